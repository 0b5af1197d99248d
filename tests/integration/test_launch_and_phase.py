"""Launches and phases on a real server with real workers: what a reviewer can do, and what then runs.

All launches are started and answered at once, then every test looks at its own; an engine is scripted, every
other part is the product's.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from support.prefect_house import OWNER, Prefect

from fitladder.approval.chain import chain_path, load_chain
from fitladder.errors import GoRefused
from fitladder.orchestrator.beside import OnDisk, compare, load_phase_runs
from fitladder.orchestrator.runs import FlowRun, create_run, flow_runs, resume_run, run_of_go, set_state
from fitladder.orchestrator.setup import DEFAULT_SLOT, GPU_POOL
from fitladder.phase.ask import close_overdue
from fitladder.phase.standing import survey
from fitladder.protocol.key import BundleKey

pytestmark = pytest.mark.server
LATE_S = 2


@dataclass
class Stage:
    """Every launch by the name of its story."""

    prefect: Prefect
    launches: dict[str, FlowRun]
    notes: dict[str, str]

    def experiment(self, story: str) -> str:
        return str(self.launches[story].parameters["experiment"])

    def ended(self, story: str) -> FlowRun:
        return self.prefect.wait(self.launches[story])


@pytest.fixture(scope="module")
def stage(prefect_server: Prefect) -> Iterator[Stage]:
    prefect = prefect_server
    prefect.checkout.script(outcomes=["close:20"], delay_s=0.1)
    with prefect.workers("cpu-launch", "gpu-phase"):
        launches, notes = {}, {}
        for story in ("go", "no_go", "wrong", "window"):
            launches[story] = prefect.launch(prefect.case())
        launches["late"] = prefect.launch(prefect.case(), wait_s=LATE_S)
        launches["owned"] = prefect.launch(prefect.case(), requester="rosa")
        stage = Stage(prefect, launches, notes)
        waiting = prefect.approve(launches["go"])
        with pytest.raises(GoRefused) as again:
            resume_run(prefect.api, waiting, {})
        notes["twice"] = str(again.value)
        prefect.approve(launches["no_go"], verdict="NO-GO", notes="the plan is not what we agreed on")
        _answer_wrongly(stage)
        prefect.approve(launches["window"], allows_window=True)
        prefect.approve(launches["owned"])
        yield stage
    prefect.settle()


def _answer_wrongly(stage: Stage) -> None:
    prefect = stage.prefect
    waiting = prefect.suspended(stage.launches["wrong"])
    good = prefect.form(waiting)
    for name, form in {
        "hash": good | {"binding_sha256": "0" * 64},
        "no hash": {key: value for key, value in good.items() if key != "binding_sha256"},
        "reviewer": good | {"reviewer": ""},
        "verdict": good | {"verdict": "MAYBE"},
        "smuggled": good | {"smuggled": True},
        "empty": {},
    }.items():
        with pytest.raises(GoRefused) as refused:
            resume_run(prefect.api, waiting, form)
        stage.notes[f"wrong {name}"] = str(refused.value)
    resume_run(prefect.api, waiting, good | {"reviewer": OWNER.upper()})


def _key(experiment: str, phase: str = "probe") -> BundleKey:
    return BundleKey(experiment_id=experiment, thinking_budget_tokens=64, phase=phase)


def test_a_go_runs_one_phase_and_the_receipt_says_whose_it_was(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("go")
    assert stage.ended("go").state_name == "Completed"
    phase = prefect.wait(prefect.phase(experiment))
    assert phase.state_name == "Completed", phase.message
    assert prefect.kinds(experiment) == ["asked", "go"]
    standing = survey(prefect.checkout.house(), experiment)
    receipt = standing.receipt(_key(experiment))
    assert receipt is not None
    assert (receipt.go_identity, receipt.rows) == ("self-asserted", 4)
    assert run_of_go(prefect.api, receipt.go_sha256) == phase
    assert prefect.generated(experiment) == ["probe@64"]


def test_the_reviewer_gets_plan_and_numbers_and_the_phase_shows_itself(stage: Stage) -> None:
    api, experiment = stage.prefect.api, stage.experiment("go")
    stage.ended("go")
    phase = stage.prefect.wait(stage.prefect.phase(experiment))

    def cards(run: FlowRun) -> list[tuple[str, str]]:
        found = api.find("/artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [run.run_id]}}})
        named = [card for card in found if card["key"]]
        return sorted((card["key"].partition("-")[0], json.dumps(card["data"])) for card in named)

    asked, shown = cards(stage.launches["go"]), cards(phase)
    assert [name for name, _ in asked] == ["numbers", "plan"]  # once each, although the flow ran twice
    assert "4 sequences fit" in dict(asked)["plan"]
    assert [name for name, _ in shown] == ["live", "receipt"]
    assert float(dict(shown)["live"]) == 100


def test_a_no_go_ends_cleanly_and_runs_nothing(stage: Stage) -> None:
    ended = stage.ended("no_go")
    assert (ended.state_type, ended.state_name) == ("COMPLETED", "NO-GO")
    assert "not what we agreed on" in ended.message
    assert stage.prefect.kinds(stage.experiment("no_go")) == ["asked", "no_go"]
    assert stage.prefect.phases(stage.experiment("no_go")) == []


def test_the_server_refuses_a_wrong_hash_an_empty_reviewer_and_an_empty_form(stage: Stage) -> None:
    for name in ("hash", "no hash", "reviewer", "verdict", "smuggled", "empty"):
        assert "did not take the answer" in stage.notes[f"wrong {name}"]
    assert "binding_sha256" in stage.notes["wrong hash"]
    assert "reviewer" in stage.notes["wrong reviewer"]


def test_a_requester_who_answers_alone_is_refused_after_the_form_was_taken(stage: Stage) -> None:
    ended = stage.ended("wrong")
    assert (ended.state_type, ended.state_name) == ("FAILED", "Refused")
    assert "given by its requester" in ended.message
    assert stage.prefect.kinds(stage.experiment("wrong")) == ["asked", "refused"]
    assert stage.prefect.phases(stage.experiment("wrong")) == []


def test_case_23_two_answers_at_once_make_one_generation(stage: Stage) -> None:
    assert "not paused" in stage.notes["twice"]
    experiment = stage.experiment("go")
    stage.prefect.wait(stage.prefect.phase(experiment))
    assert stage.prefect.generated(experiment) == ["probe@64"]
    assert stage.prefect.kinds(experiment) == ["asked", "go"]


def test_case_23_a_late_approval_is_refused_as_expired_and_recorded(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("late")
    waiting = stage.launches["late"]
    prefect.wait(waiting, lambda run: bool(prefect.kinds(experiment)))
    time.sleep(LATE_S + 1)
    with pytest.raises(GoRefused):
        resume_run(prefect.api, waiting, {"verdict": "GO"})
    assert prefect.wait(waiting, lambda run: run.state_type != "PAUSED").state_type == "FAILED"
    close_overdue(prefect.checkout.house(), experiment, datetime.now(UTC))  # as the next ask does
    assert prefect.kinds(experiment) == ["asked", "timed_out"]
    assert prefect.phases(experiment) == []


def test_a_retried_launch_replays_its_answer_and_starts_nothing_again(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("go")
    launch = stage.ended("go")
    first = prefect.wait(prefect.phase(experiment))
    set_state(prefect.api, launch, "SCHEDULED", "AwaitingRetry", "retried by hand")
    again = prefect.wait(launch)
    assert again.state_type == "FAILED"  # its GO is used, its phase is done: nothing is due for this ask
    assert "GoRefused" in again.message
    assert [run.run_id for run in prefect.phases(experiment)] == [first.run_id]
    assert prefect.generated(experiment) == ["probe@64"]
    assert prefect.kinds(experiment) == ["asked", "go"]


def test_a_hand_off_is_waited_for_and_dispatches(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("owned")
    assert f"hand-off of {GPU_POOL} by {OWNER}" in stage.ended("owned").message
    assert prefect.phases(experiment) == []
    [asked] = [
        run
        for run in flow_runs(prefect.api, "handoff")
        if run.parameters["ask"]["experiment_id"] == experiment
    ]
    waiting = prefect.suspended(asked)
    form = {"hands_over": True, "owner": OWNER, "expires": "2199-01-01T00:00:00Z", "signature": ""}
    with pytest.raises(GoRefused):
        resume_run(prefect.api, waiting, form | {"owner": ""})
    resume_run(prefect.api, waiting, form)
    assert prefect.wait(waiting).state_type == "COMPLETED"
    assert prefect.wait(prefect.phase(experiment)).state_name == "Completed"
    assert prefect.kinds(experiment) == ["asked", "go", "handoff"]
    assert prefect.generated(experiment) == ["probe@64"]


def test_case_24_ticks_six_seconds_apart_take_an_approved_phase_once(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("window")
    stage.ended("window")
    delivered = prefect.wait(prefect.phase(experiment))
    assert delivered.state_name == "Delivered"
    assert prefect.generated(experiment) == []
    ticks = [create_run(prefect.api, "scheduled-phase/scheduled-phase", {})]
    time.sleep(6)
    ticks.append(create_run(prefect.api, "scheduled-phase/scheduled-phase", {}))
    states = [prefect.wait(tick) for tick in ticks]
    assert sorted(state.state_name for state in states) == ["Completed", "Idle"], states
    assert prefect.generated(experiment) == ["probe@64"]


def test_a_replayed_go_is_refused_by_the_gpu_host(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("go")
    first = prefect.wait(prefect.phase(experiment))
    for changes, want in (({"phase": "base"}, "FAILED"), ({}, "COMPLETED")):
        run = create_run(prefect.api, "phase/phase", {**first.parameters, **changes})
        ended = prefect.wait(run)
        assert ended.state_type == want, ended.message
    assert ended.state_name == "AlreadyDone"
    assert prefect.generated(experiment) == ["probe@64"]


def test_conflicts_between_prefect_and_disk_are_named(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("go")
    run = next(one for one in prefect.phases(experiment) if one.state_name == "Completed")
    go = str(run.parameters["go_sha256"])
    done, never = OnDisk(_key(experiment), "complete", go), OnDisk(_key(experiment), "not_run", None)

    def conflict(disk: OnDisk) -> str | None:
        runs = [one for one in load_phase_runs(prefect.api, experiment) if one.run_id == run.run_id]
        return compare([disk], runs, root_is_held=False)[0].conflict

    assert conflict(done) is None
    assert "no receipt" in str(conflict(never))
    set_state(prefect.api, run, "CRASHED", "Crashed", "heartbeat lost")
    assert "over a valid receipt" in str(conflict(done))
    assert conflict(never) is None
    set_state(prefect.api, run, "RUNNING", "Running", "")
    assert "nobody on this host holds the root" in str(conflict(done))
    set_state(prefect.api, run, "COMPLETED", "Completed", "")


def test_the_device_is_free_when_nothing_runs(stage: Stage) -> None:
    prefect = stage.prefect
    deadline = time.monotonic() + 30
    while (slot := prefect.api.read(f"/v2/concurrency_limits/{DEFAULT_SLOT}"))["active_slots"]:
        assert time.monotonic() < deadline, slot
        time.sleep(0.2)
    assert slot["limit"] == 1


def test_nothing_but_what_was_approved_has_run(stage: Stage) -> None:
    prefect = stage.prefect
    house = prefect.checkout.house()
    for story in stage.launches:
        experiment = stage.experiment(story)
        entries = load_chain(chain_path(house.approvals, experiment), experiment)
        assert len(prefect.generated(experiment)) == sum(entry.kind == "go" for entry in entries), story
