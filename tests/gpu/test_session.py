"""What the H200 has to show, asked of this machine; skips where there is no CUDA device or no vLLM."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

PARTS = ("exact", "implicit", "wide64")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no CUDA device here"),
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="no vLLM in this environment"),
]


@pytest.fixture(scope="module")
def session():
    spec = importlib.util.spec_from_file_location("gpu_session", Path(__file__).with_name("session.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpu_session"] = module
    spec.loader.exec_module(module)
    os.environ.setdefault("FITLADDER_ENGINE_PYTHON", sys.executable)
    return module


@pytest.fixture(scope="module")
def rehearsed(session, gpu_out, need_seconds):
    need_seconds(300)
    return session.rehearsals(PARTS, gpu_out)


@pytest.mark.parametrize("part", PARTS)
def test_rehearsal_shows_the_registered_geometry(rehearsed, part):
    assert rehearsed[part]


def test_predicted_blocks_and_pools_are_the_live_ones(session, gpu_out, need_seconds):
    need_seconds(170 * len(session.POOLS))
    assert session.pools(gpu_out)


def test_runner_costs_at_most_one_percent(session, gpu_out, need_seconds):
    need_seconds(260)
    assert session.overhead(gpu_out)
