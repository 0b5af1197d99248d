"""Servers and workers that die around an approval and in the middle of a phase: generations are counted.

What was approved runs once; what broke stays preflight-only; what Prefect believes then changes nothing.
"""

import os
import signal
import time
from collections.abc import Iterator

import pytest
from scripted.house import approve, key_of
from support.prefect_house import Prefect

from fitladder.errors import LadderRefused
from fitladder.orchestrator.runs import FlowRun, create_run, set_state
from fitladder.orchestrator.setup import DEFAULT_SLOT, GPU_POOL, empty_slot, ensure_pool
from fitladder.phase.standing import survey

pytestmark = pytest.mark.server
COMPLETE = ["engine.json", "preflight.json", "receipt.json", "samples.parquet"]
LONG_S = 20.0  # between two progress reports: longer than any of these tests looks at a generation


@pytest.fixture
def prefect(prefect_server: Prefect) -> Iterator[Prefect]:
    prefect_server.checkout.script(outcomes=["drift"], delay_s=0.3)
    yield prefect_server
    for run in _open_runs(prefect_server):
        set_state(prefect_server.api, run, "CANCELLED", "Cancelled", "the test is over")
    empty_slot(prefect_server.api, DEFAULT_SLOT)


def _open_runs(prefect: Prefect) -> list[FlowRun]:
    names = [f"case_{number:02d}" for number in range(prefect.cases)]
    return [run for name in names for run in prefect.phases(name) if not run.is_final]


def _wait_gone(prefect: Prefect, limit_s: float = 40.0) -> None:
    deadline = time.monotonic() + limit_s
    while prefect.engines():
        assert time.monotonic() < deadline, "an engine outlived its phase"
        time.sleep(0.1)


def _check_stuck(prefect: Prefect, experiment: str) -> None:
    """Preflight-only, one generation, and no way to a second one."""
    assert prefect.on_disk(experiment) == ["preflight.json"]
    assert prefect.generated(experiment) == ["probe@64"]
    with pytest.raises(LadderRefused, match="preflight only"):
        approve(prefect.checkout.house(), key_of("probe", 64, experiment), "again")


def test_case_23_server_and_workers_die_between_question_and_answer(prefect: Prefect) -> None:
    experiment = prefect.case()
    with prefect.workers("cpu-first") as workers:
        waiting = prefect.suspended(prefect.launch(experiment))
        os.killpg(workers["cpu-first"].process.pid, signal.SIGKILL)
        prefect.restart()
    with prefect.workers("cpu-second", "gpu-second"):
        assert prefect.suspended(waiting).run_id == waiting.run_id
        prefect.approve(waiting)
        assert prefect.wait(waiting).state_name == "Completed"
        assert prefect.wait(prefect.phase(experiment)).state_name == "Completed"
    assert prefect.kinds(experiment) == ["asked", "go"]
    assert prefect.generated(experiment) == ["probe@64"]
    assert prefect.on_disk(experiment) == COMPLETE


def test_a_worker_that_is_told_to_end_takes_phase_and_engine_along(prefect: Prefect) -> None:
    experiment = prefect.case()
    prefect.checkout.script(outcomes=["drift"], delay_s=LONG_S)
    run = prefect.approved_phase(experiment)
    with prefect.workers("gpu-term") as workers:
        prefect.generating(experiment)
        workers["gpu-term"].end(30.0)
        _wait_gone(prefect)
    _check_stuck(prefect, experiment)
    assert prefect.wait(run, lambda _: True).state_type != "COMPLETED"


def test_a_worker_killed_before_during_and_after_loses_and_doubles_nothing(prefect: Prefect) -> None:
    experiment = prefect.case()
    prefect.checkout.script(outcomes=["drift"], delay_s=1.5)
    run = prefect.approved_phase(experiment)
    with prefect.workers("gpu-killed") as workers:
        prefect.generating(experiment)
        workers["gpu-killed"].process.kill()  # the worker alone: its phase is a process of its own
        deadline = time.monotonic() + 60
        while prefect.on_disk(experiment) != COMPLETE:
            assert time.monotonic() < deadline, prefect.on_disk(experiment)
            time.sleep(0.2)
        _wait_gone(prefect)
    with prefect.workers("gpu-after"):
        again = create_run(prefect.api, "phase/phase", dict(run.parameters))
        assert prefect.wait(again).state_name == "AlreadyDone"
    assert prefect.generated(experiment) == ["probe@64"]
    assert survey(prefect.checkout.house(), experiment).receipt(key_of("probe", 64, experiment)) is not None


def test_cancelling_in_the_interface_stops_the_engine_and_frees_the_device(prefect: Prefect) -> None:
    experiment = prefect.case()
    prefect.checkout.script(outcomes=["drift"], delay_s=LONG_S)
    run = prefect.approved_phase(experiment)
    with prefect.workers("gpu-cancel"):
        prefect.generating(experiment)
        set_state(prefect.api, run, "CANCELLING", "Cancelling", "")
        _wait_gone(prefect)
        assert prefect.wait(run).state_type == "CANCELLED"
        deadline = time.monotonic() + 20
        while prefect.api.read(f"/v2/concurrency_limits/{DEFAULT_SLOT}")["active_slots"]:
            assert time.monotonic() < deadline, "the device is still taken"
            time.sleep(0.2)
    _check_stuck(prefect, experiment)


def test_case_24_two_workers_two_runs_one_generation(prefect: Prefect) -> None:
    experiment = prefect.case()
    prefect.checkout.script(outcomes=["drift"], delay_s=6.0)
    first = prefect.approved_phase(experiment)
    ensure_pool(prefect.api, GPU_POOL, 2)
    try:
        with prefect.workers("gpu-left", "gpu-right"):
            prefect.generating(experiment)
            second = prefect.wait(create_run(prefect.api, "phase/phase", dict(first.parameters)))
            assert second.state_type == "FAILED"
            assert "RootBusy" in second.message
            assert first.run_id in second.message  # the holder is named by its run
            assert prefect.wait(first).state_name == "Completed"
    finally:
        ensure_pool(prefect.api, GPU_POOL, 1)
    assert prefect.generated(experiment) == ["probe@64"]
    assert prefect.on_disk(experiment) == COMPLETE


def test_a_generation_outlives_its_server(prefect: Prefect) -> None:
    experiment = prefect.case()
    prefect.checkout.script(outcomes=["drift"], delay_s=2.0)
    prefect.approved_phase(experiment)
    with prefect.workers("gpu-alone"):
        prefect.generating(experiment)
        prefect.server.process.kill()
        deadline = time.monotonic() + 90
        while prefect.on_disk(experiment) != COMPLETE:
            assert time.monotonic() < deadline, prefect.on_disk(experiment)
            time.sleep(0.2)
    prefect.restart()
    assert prefect.generated(experiment) == ["probe@64"]
