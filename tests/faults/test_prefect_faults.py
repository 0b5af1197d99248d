"""Servers and workers that die around an approval and in the middle of a phase: generations are counted.

What was approved runs once; what broke stays preflight-only until it is begun again under its own GO; what
Prefect believes then changes nothing.
"""

import os
import signal
import time
from collections.abc import Iterator

import pytest
from support.approvals import approve, key_of
from support.prefect_server import PrefectServer

from fitladder.errors import LadderRefused
from fitladder.prefect_api.deployments import DEFAULT_SLOT, release_slot
from fitladder.prefect_api.runs import create_run, set_state

pytestmark = pytest.mark.server
COMPLETE = ["engine.json", "preflight.json", "receipt.json", "samples.parquet"]
LONG_S = 20.0  # between two progress reports: longer than any of these tests looks at a generation


@pytest.fixture
def prefect(prefect_server: PrefectServer) -> Iterator[PrefectServer]:
    yield prefect_server
    prefect_server.settle()


def _wait_gone(prefect: PrefectServer, limit_s: float = 40.0) -> None:
    deadline = time.monotonic() + limit_s
    while prefect.engines():
        assert time.monotonic() < deadline, "an engine outlived its phase"
        time.sleep(0.1)


def _wait_complete(prefect: PrefectServer, experiment: str) -> None:
    deadline = time.monotonic() + 90
    while prefect.on_disk(experiment) != COMPLETE:
        assert time.monotonic() < deadline, prefect.on_disk(experiment)
        time.sleep(0.2)


def _check_stuck(prefect: PrefectServer, experiment: str) -> None:
    """Preflight-only, one generation, and no way to a second one that is not said to be one."""
    assert prefect.on_disk(experiment) == ["preflight.json"]
    assert prefect.generated(experiment) == ["probe@64"]
    with pytest.raises(LadderRefused, match="preflight only"):
        approve(prefect.checkout.workspace(), key_of("probe", 64, experiment), "again")


def test_two_workers_two_runs_one_generation_and_one_worker_killed(prefect: PrefectServer) -> None:
    experiment = prefect.fresh_experiment()
    prefect.checkout.script(outcomes=["close:20"], delay_s=6.0)
    first = prefect.approved_phase(experiment)
    prefect.allow(2)
    try:
        prefect.need("gpu")
        prefect.generating(experiment)
        prefect.need("gpu 2")
        second = prefect.wait(create_run(prefect.api, "phase/phase", dict(first.parameters)))
        assert second.state_type == "FAILED"
        assert "RootBusy" in second.message
        assert first.run_id in second.message  # the holder is named by its run
        prefect.children["gpu"].process.kill()  # the worker alone: its phase is a process of its own
        _wait_complete(prefect, experiment)
        again = prefect.wait(create_run(prefect.api, "phase/phase", dict(first.parameters)))
        assert again.state_name == "AlreadyDone"
    finally:
        prefect.allow(1)
    _wait_gone(prefect)
    assert prefect.generated(experiment) == ["probe@64"]


def test_cancelling_in_the_interface_stops_the_engine_and_frees_the_device(prefect: PrefectServer) -> None:
    experiment = prefect.fresh_experiment()
    prefect.checkout.script(outcomes=["close:20"], delay_s=LONG_S)
    run = prefect.approved_phase(experiment)
    prefect.need("gpu 2")
    prefect.generating(experiment)
    set_state(prefect.api, run, "CANCELLING", "Cancelling", "")
    _wait_gone(prefect)
    assert prefect.wait(run).state_type == "CANCELLED"
    deadline = time.monotonic() + 20
    while prefect.api.read(f"/v2/concurrency_limits/{DEFAULT_SLOT}")["active_slots"]:
        assert time.monotonic() < deadline, "the device is still taken"
        time.sleep(0.2)
    _check_stuck(prefect, experiment)


def test_what_dies_is_named_and_a_generation_outlives_its_server(
    prefect: PrefectServer,
) -> None:
    broken, running = prefect.fresh_experiment(), prefect.fresh_experiment()
    prefect.checkout.script(outcomes=["close:20"], delay_s=LONG_S)
    prefect.need("cpu", "gpu 2")
    dead = prefect.approved_phase(broken)
    prefect.generating(broken)
    prefect.children["gpu 2"].end(30.0)  # told to end, a worker takes phase and engine along
    _wait_gone(prefect)
    _check_stuck(prefect, broken)
    assert not prefect.wait(dead, lambda _: True).is_final  # nobody told the server, and the pool is full

    prefect.checkout.script(outcomes=["close:20"], delay_s=3.0)
    asked = prefect.launch(broken, resume=True)
    lonely = prefect.approved_phase(running)
    said = prefect.agent("gpu 3")
    assert f"closed run {dead.name}, which is dead: Crashed: pid " in said
    assert f"flow run {dead.run_id}) is gone" in said
    assert prefect.wait(dead).state_type == "CRASHED"
    release_slot(prefect.api, DEFAULT_SLOT)  # sooner than the dead run's lease of a minute ends
    waiting = prefect.suspended(asked)
    prefect.generating(running)
    os.killpg(prefect.children["cpu"].process.pid, signal.SIGKILL)
    prefect.server.process.kill()
    _wait_complete(prefect, running)
    prefect.end_workers(1.0)  # they would look for their server for a minute
    prefect.restart()
    assert prefect.generated(running) == ["probe@64"]

    prefect.checkout.script(outcomes=["close:20"])
    release_slot(prefect.api, DEFAULT_SLOT)  # as above, of the run whose server was away
    assert f"closed run {lonely.name}, which is dead: Completed" in prefect.agent("gpu 4")
    prefect.need("cpu")
    prefect.approve(waiting)
    assert prefect.wait(waiting).state_name == "Completed"
    [again] = [run for run in prefect.phases(broken) if run.run_id != dead.run_id]
    assert prefect.wait(again).state_name == "Completed"
    assert prefect.kinds(broken) == ["asked", "go"] * 2
    assert prefect.generated(broken) == ["probe@64"] * 2
    assert prefect.on_disk(broken) == ["preflight.json"]
    assert prefect.on_disk(broken, attempt=2) == COMPLETE
