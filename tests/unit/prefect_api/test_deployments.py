"""prefect.yaml and the code agree: every entry point is a flow, every pool one that an agent serves."""

import importlib
from pathlib import Path

import pytest
import yaml

from fitladder.prefect_api.deployments import CPU_POOL, GPU_POOL
from fitladder.prefect_api.session import FLOWS

ROOT = Path(__file__).parents[3]
DEPLOYMENTS = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda one: one["name"])
def test_every_deployment_is_a_flow_of_its_own_name(deployment) -> None:
    path, _, name = deployment["entrypoint"].partition(":")
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    flow = getattr(module, name)
    assert Path(module.__file__) == ROOT / path
    assert flow.name == deployment["name"]
    assert flow.description
    assert deployment["work_pool"]["name"] in (CPU_POOL, GPU_POOL)


def test_a_session_knows_every_deployment() -> None:
    assert {deployment["name"] for deployment in DEPLOYMENTS} == set(FLOWS)


def test_phases_never_hang_on_a_workers_pipes_and_no_path_of_a_machine_is_written_down() -> None:
    for deployment in DEPLOYMENTS:
        if deployment["work_pool"]["name"] == GPU_POOL:
            assert deployment["work_pool"]["job_variables"] == {"stream_output": False}
    text = (ROOT / "prefect.yaml").read_text()
    assert "{{ $FITLADDER_CHECKOUT }}" in text
    assert str(ROOT) not in text
