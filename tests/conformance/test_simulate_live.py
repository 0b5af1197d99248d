"""A real vLLM scheduler does, step for step, what the simulator says: alone, worst case and spaced."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.worst_case import WorstCaseAdmission

from fitladder.capacity.admission import AdmissionPolicy, SpacedAdmission
from fitladder.capacity.pool import Pool
from fitladder.capacity.simulator import Request, simulate

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
PYTHON = REPOSITORY / ".venv-vllm/bin/python"
SEQS, BATCHED, BLOCKS, LENGTH = 24, 256, 33, 200  # as in live_scheduler.py

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not PYTHON.exists(), reason="no engine environment .venv-vllm (make setup)"),
]


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("weightless")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((str(REPOSITORY / "src"), str(REPOSITORY / "tests"))),
        "VLLM_CACHE_ROOT": str(REPOSITORY / ".cache/vllm"),  # a fresh one costs a second import of vllm
    }
    done = subprocess.run(
        [str(PYTHON), str(HERE / "live_scheduler.py"), str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("CELL ")]


def policy_of(cell: dict[str, Any], pool: Pool) -> AdmissionPolicy | None:
    if cell["policy"] == "none":
        return None
    if cell["policy"] == "spaced":
        return SpacedAdmission(pool, cell["prompts"], LENGTH, SEQS, BATCHED)
    return WorstCaseAdmission(pool, max(cell["prompts"]), LENGTH, SEQS)


def test_every_cell_comes_out_exactly(cells: list[dict[str, Any]]) -> None:
    assert [cell["policy"] for cell in cells] == ["none", "worst_case", "spaced"] * 2
    for cell in cells:
        pool = Pool(BLOCKS - 1, cell["block"])
        result = simulate(
            [Request(*pair) for pair in zip(cell["prompts"], cell["outputs"], strict=True)],
            pool,
            max_num_seqs=SEQS,
            max_num_batched_tokens=BATCHED,
            policy=policy_of(cell, pool),
            max_new_tokens=LENGTH,
        )
        live = (cell["steps"], cell["preemptions"], cell["scheduled_tokens"])
        assert (result.steps, result.preemptions, result.scheduled_tokens) == live, cell["policy"]
        assert [list(pair) for pair in result.width_steps] == cell["width_steps"], cell["policy"]


def test_admission_ends_preemption_and_spacing_takes_fewer_steps(cells: list[dict[str, Any]]) -> None:
    for none, worst, spaced in (cells[:3], cells[3:]):
        assert none["preemptions"] > 0 == worst["preemptions"] == spaced["preemptions"]
        assert spaced["steps"] < worst["steps"]
