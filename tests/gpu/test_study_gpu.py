"""A study on this machine's GPU, small: engines side by side, graphs resolved, counts as simulated.

Skips where there is no CUDA device or no vLLM; the committed studies in data/studies are the measurement.
"""

import importlib.util
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fitladder.study.bundle import verify_study
from fitladder.study.plan import load_study
from fitladder.study.process import cell_command
from fitladder.study.run import StudyHost, run_study

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no CUDA device here"),
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="no vLLM in this environment"),
]

ROOT = Path(__file__).parents[2]


def test_a_small_study_counts_as_simulated(tmp_path: Path, need_seconds: Callable[[float], None]) -> None:
    need_seconds(240)
    text = (ROOT / "data/studies/h200_qwen35_4b_grouped/study.yaml").read_text()
    for old, new in (
        ("study_id: h200_qwen35_4b_grouped", "study_id: small"),
        ("sampled_tokens: 650", "sampled_tokens: 120"),
        ("repeats: 4", "repeats: 3"),
        ("samples: 144", "samples: 48"),
        ("-n144", "-n48"),
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "study.yaml").write_text(text)
    host = StudyHost(
        out=tmp_path / "out", work=tmp_path / "work", command=lambda: cell_command(Path(sys.executable))
    )
    measured = run_study(tmp_path / "study.yaml", host)
    assert not measured.failures
    study = load_study(tmp_path / "study.yaml")
    for cell in verify_study(tmp_path / "out").results.cells:
        assert cell.observed is not None
        assert cell.predicted is not None
        assert set(cell.observed.preemptions) == {cell.predicted.preemptions}
        assert set(cell.observed.recomputed_tokens) == {cell.predicted.recomputed_tokens}
        assert cell.live is not None
        assert cell.observed.late_compilations == 0  # the warm-up met every batch
        assert cell.live.block_size_tokens == 528
        assert cell.live.capture_resolved == study.cell(cell.name).capture_sizes
