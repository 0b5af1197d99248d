"""Servers and workers that die around an approval and in the middle of a phase: generations are counted.

What was approved runs once; what broke stays preflight-only; what Prefect believes then changes nothing.
"""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from scripted.house import approve, key_of
from support.prefect_house import Prefect

from fitladder.errors import LadderRefused
from fitladder.orchestrator.processes import Child
from fitladder.orchestrator.runs import create_run, set_state
from fitladder.orchestrator.setup import CPU_POOL, DEFAULT_SLOT, GPU_POOL, empty_slot, ensure_pool

pytestmark = pytest.mark.server
COMPLETE = ["engine.json", "preflight.json", "receipt.json", "samples.parquet"]
LONG_S = 20.0  # between two progress reports: longer than any of these tests looks at a generation


@dataclass
class Agents:
    """Workers that the tests of this module share, started when first asked for and again once dead."""

    prefect: Prefect
    children: dict[str, Child]

    def need(self, *names: str) -> None:
        for name in names:
            child = self.children.get(name)
            if child is None or child.process.poll() is not None:
                self.children[name] = self.prefect.worker(CPU_POOL if name == "cpu" else GPU_POOL, name)

    def end_all(self, patience_s: float = 20.0) -> None:
        for child in self.children.values():
            child.end(patience_s)


@pytest.fixture(scope="module")
def agents(prefect_server: Prefect) -> Iterator[Agents]:
    agents = Agents(prefect_server, {})
    yield agents
    agents.end_all()
    prefect_server.settle()


@pytest.fixture
def prefect(prefect_server: Prefect) -> Iterator[Prefect]:
    yield prefect_server
    prefect_server.settle()


def _wait_gone(prefect: Prefect, limit_s: float = 40.0) -> None:
    deadline = time.monotonic() + limit_s
    while prefect.engines():
        assert time.monotonic() < deadline, "an engine outlived its phase"
        time.sleep(0.1)


def _wait_complete(prefect: Prefect, experiment: str) -> None:
    deadline = time.monotonic() + 90
    while prefect.on_disk(experiment) != COMPLETE:
        assert time.monotonic() < deadline, prefect.on_disk(experiment)
        time.sleep(0.2)


def _check_stuck(prefect: Prefect, experiment: str) -> None:
    """Preflight-only, one generation, and no way to a second one."""
    assert prefect.on_disk(experiment) == ["preflight.json"]
    assert prefect.generated(experiment) == ["probe@64"]
    with pytest.raises(LadderRefused, match="preflight only"):
        approve(prefect.checkout.house(), key_of("probe", 64, experiment), "again")


def test_case_24_two_workers_two_runs_one_generation_and_one_worker_killed(
    prefect: Prefect, agents: Agents
) -> None:
    experiment = prefect.case()
    prefect.checkout.script(outcomes=["close:20"], delay_s=6.0)
    first = prefect.approved_phase(experiment)
    ensure_pool(prefect.api, GPU_POOL, 2)
    try:
        agents.need("left")
        prefect.generating(experiment)
        agents.need("right")
        second = prefect.wait(create_run(prefect.api, "phase/phase", dict(first.parameters)))
        assert second.state_type == "FAILED"
        assert "RootBusy" in second.message
        assert first.run_id in second.message  # the holder is named by its run
        agents.children["left"].process.kill()  # the worker alone: its phase is a process of its own
        _wait_complete(prefect, experiment)
        again = prefect.wait(create_run(prefect.api, "phase/phase", dict(first.parameters)))
        assert again.state_name == "AlreadyDone"
    finally:
        ensure_pool(prefect.api, GPU_POOL, 1)
    _wait_gone(prefect)
    assert prefect.generated(experiment) == ["probe@64"]


def test_cancelling_in_the_interface_stops_the_engine_and_frees_the_device(
    prefect: Prefect, agents: Agents
) -> None:
    experiment = prefect.case()
    prefect.checkout.script(outcomes=["close:20"], delay_s=LONG_S)
    run = prefect.approved_phase(experiment)
    agents.need("right")
    prefect.generating(experiment)
    set_state(prefect.api, run, "CANCELLING", "Cancelling", "")
    _wait_gone(prefect)
    assert prefect.wait(run).state_type == "CANCELLED"
    deadline = time.monotonic() + 20
    while prefect.api.read(f"/v2/concurrency_limits/{DEFAULT_SLOT}")["active_slots"]:
        assert time.monotonic() < deadline, "the device is still taken"
        time.sleep(0.2)
    _check_stuck(prefect, experiment)


def test_a_worker_that_is_told_to_end_takes_phase_and_engine_along(prefect: Prefect, agents: Agents) -> None:
    experiment = prefect.case()
    prefect.checkout.script(outcomes=["close:20"], delay_s=LONG_S)
    run = prefect.approved_phase(experiment)
    agents.need("right")
    prefect.generating(experiment)
    agents.children["right"].end(30.0)
    _wait_gone(prefect)
    _check_stuck(prefect, experiment)
    assert prefect.wait(run, lambda _: True).state_type != "COMPLETED"


def test_case_23_everything_dies_between_question_and_answer_and_a_generation_outlives_its_server(
    prefect: Prefect, agents: Agents
) -> None:
    asked, running = prefect.case(), prefect.case()
    prefect.checkout.script(outcomes=["close:20"], delay_s=3.0)
    agents.need("cpu", "last")
    waiting = prefect.suspended(prefect.launch(asked))
    prefect.approved_phase(running)
    prefect.generating(running)
    os.killpg(agents.children["cpu"].process.pid, signal.SIGKILL)
    prefect.server.process.kill()
    _wait_complete(prefect, running)
    agents.end_all(1.0)  # they would look for their server for a minute
    prefect.restart()
    assert prefect.generated(running) == ["probe@64"]
    prefect.checkout.script(outcomes=["close:20"])
    empty_slot(prefect.api, DEFAULT_SLOT)  # of the run that could not give it back
    for run in prefect.phases(running):
        set_state(prefect.api, run, "CRASHED", "Crashed", "its server was away")
    agents.need("cpu", "last")
    prefect.approve(waiting)
    assert prefect.wait(waiting).state_name == "Completed"
    assert prefect.wait(prefect.phase(asked)).state_name == "Completed"
    assert prefect.kinds(asked) == ["asked", "go"]
    assert prefect.generated(asked) == ["probe@64"]
    assert prefect.on_disk(asked) == COMPLETE
