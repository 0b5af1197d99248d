"""`fitladder study`: one folder in, figures out, one line where something is off."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CODE = "import sys; from fitladder.cli.study import app; app(args=sys.argv[1:])"


def study(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CODE, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
    )


def test_a_study_without_results_is_partial(tmp_path: Path) -> None:
    (tmp_path / "studies" / "none").mkdir(parents=True)
    done = study("verify", "none", "--data", str(tmp_path))
    assert done.returncode != 0
    assert "has no receipt" in done.stderr


def test_help_names_the_three_commands() -> None:
    done = study("--help")
    assert done.returncode == 0
    assert all(f" {name} " in done.stdout for name in ("run", "show", "verify"))
