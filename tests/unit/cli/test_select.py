"""`fitladder select` before the end of a ladder: what is due, and nothing where the experiment has ended."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("experiment", "said"),
    [
        ("qwen35_4b_verified_macro_exact_cudagraph_rerun", "no selection yet: terminal before a fresh probe"),
        ("smollm2_135m_cpu_rehearsal", "no selection yet: a fresh probe at 384"),
    ],
)
def test_no_phase_is_due_of_an_experiment_that_ended(tmp_path: Path, experiment: str, said: str) -> None:
    done = subprocess.run(  # a process of its own: it seals itself
        [
            str(Path(sys.executable).parent / "fitladder"),
            "select",
            experiment,
            f"--params={ROOT / 'params.yaml'}",
            f"--data={tmp_path / 'data'}",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert f"{experiment}: {said}" in done.stdout
