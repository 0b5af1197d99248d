"""Launches and phases on a real server with real workers: what a reviewer can do, and what then runs.

Everything is started as soon as it can be, and each test looks at its own story; an engine is scripted, every
other part is the product's.
"""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from support.prefect_server import OWNER, PrefectServer

from fitladder.approval.chain import chain_path, load_chain
from fitladder.errors import GoRefused
from fitladder.evidence.load import load_evidence
from fitladder.phase.ask import close_overdue
from fitladder.prefect_api.approval_conflicts import audit_approvals
from fitladder.prefect_api.conflicts import OnDisk, compare, load_phase_runs
from fitladder.prefect_api.deployments import DEFAULT_SLOT, GPU_POOL
from fitladder.prefect_api.runs import FlowRun, create_run, flow_runs, resume_run, run_of_go, set_state
from fitladder.records.bundle_key import BundleKey
from fitladder.utc import format_utc

pytestmark = pytest.mark.server
LATE_S = 2


@dataclass
class Stage:
    """Every launch by the name of its story."""

    prefect: PrefectServer
    launches: dict[str, FlowRun]
    notes: dict[str, str] = field(default_factory=dict)
    runs: dict[str, FlowRun] = field(default_factory=dict)  # every other run that a story needs

    def experiment(self, story: str) -> str:
        return str(self.launches[story].parameters["experiment"])

    def ended(self, story: str) -> FlowRun:
        return self.prefect.wait(self.launches[story])


@pytest.fixture(scope="module")
def stage(prefect_server: PrefectServer) -> Iterator[Stage]:
    prefect = prefect_server
    prefect.checkout.script(outcomes=["close:20"], delay_s=0.1)
    prefect.need("cpu", "gpu")
    launches = {name: prefect.launch(prefect.fresh_experiment()) for name in ("window", "go")}
    launches["owned"] = prefect.launch(prefect.fresh_experiment(), requester="rosa")
    launches["no_go"] = prefect.launch(prefect.fresh_experiment())
    launches["wrong"] = prefect.launch(prefect.fresh_experiment())
    launches["late"] = prefect.launch(prefect.fresh_experiment(), wait_s=LATE_S)
    stage = Stage(prefect, launches)
    prefect.approve(launches["window"], allows_window=True)
    waiting = prefect.approve(launches["go"])
    with pytest.raises(GoRefused) as again:
        resume_run(prefect.api, waiting, {})
    stage.notes["twice"] = str(again.value)
    prefect.approve(launches["owned"])
    stage.runs["study"] = create_run(prefect.api, "study/study", {"name": "small"})
    prefect.approve(launches["no_go"], verdict="NO-GO", notes="the plan is not what we agreed on")
    _answer_wrongly(stage)
    _tick_twice(stage)
    _lend(stage)
    _replay(stage)
    yield stage
    prefect.settle()


def _tick_twice(stage: Stage) -> None:
    """Two ticks of the schedule, 6 s apart, once the approved phase lies with the agent."""
    prefect, experiment = stage.prefect, stage.experiment("window")
    stage.runs["delivered"] = prefect.wait(prefect.phase(experiment))
    stage.notes["before the window"] = str(prefect.generated(experiment))
    for number in (1, 2):
        stage.runs[f"tick {number}"] = prefect.tick(after_s=6.0 * (number - 1))


def _lend(stage: Stage) -> None:
    """The owner's form, first without a name."""
    prefect, experiment = stage.prefect, stage.experiment("owned")
    stage.notes["without the owner"] = f"{stage.ended('owned').message} {prefect.phases(experiment)}"
    [asked] = [
        run
        for run in flow_runs(prefect.api, "handoff")
        if run.parameters["ask"]["experiment_id"] == experiment
    ]
    waiting = stage.runs["handoff"] = prefect.suspended(asked)
    form = {"hands_over": True, "owner": OWNER, "expires": "2199-01-01T00:00:00Z", "signature": ""}
    with pytest.raises(GoRefused):
        resume_run(prefect.api, waiting, form | {"owner": ""})
    resume_run(prefect.api, waiting, form)


def _replay(stage: Stage) -> None:
    """A used GO for another phase, and its launch once more."""
    prefect = stage.prefect
    first = stage.runs["first"] = prefect.wait(prefect.phase(stage.experiment("go")))
    stage.runs["replayed"] = create_run(prefect.api, "phase/phase", {**first.parameters, "phase": "base"})
    stage.runs["answered"] = launch = stage.ended("go")
    set_state(prefect.api, launch, "SCHEDULED", "AwaitingRetry", "retried by hand")


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
    assert stage.runs["answered"].state_name == "Completed"
    phase = stage.runs["first"]
    assert phase.state_name == "Completed", phase.message
    assert prefect.kinds(experiment) == ["asked", "go"]
    evidence = load_evidence(prefect.checkout.workspace(), experiment)
    receipt = evidence.receipt(_key(experiment))
    assert receipt is not None
    assert (receipt.go_identity, receipt.rows) == ("self-asserted", 4)
    assert run_of_go(prefect.api, receipt.go_sha256) == phase
    assert prefect.generated(experiment) == ["probe@64"]


def test_the_reviewer_gets_plan_and_numbers_and_the_phase_shows_itself(stage: Stage) -> None:
    api, phase = stage.prefect.api, stage.runs["first"]

    def cards(run: FlowRun) -> list[tuple[str, str]]:
        found = api.find("/artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [run.run_id]}}})
        named = [card for card in found if card["key"]]
        return sorted((card["key"].partition("-")[0], json.dumps(card["data"])) for card in named)

    asked, shown = cards(stage.launches["go"]), cards(phase)
    assert [name for name, _ in asked] == ["numbers", "plan"]  # once each, although the flow ran twice
    assert "4 sequences fit" in dict(asked)["plan"]
    assert [name for name, _ in shown] == ["live", "receipt"]
    assert float(dict(shown)["live"]) == 100


def test_the_log_of_a_phase_has_its_steps_and_only_counts(stage: Stage) -> None:
    workspace, experiment = stage.prefect.checkout.workspace(), stage.experiment("go")
    key = _key(experiment)
    lines = workspace.phase_log(experiment, key.thinking_budget_tokens, key.phase).read_text().splitlines()
    said = [line.partition(": ")[2] for line in lines]
    steps = [
        "authorise",
        "check inputs",
        "build engine and run gates",
        "write preflight",
        "generate",
        "commit",
    ]
    assert [line.removesuffix(" begins") for line in said if line.endswith(" begins")][:6] == steps
    counts = r"stage \d, [\d.,]+ tokens, .* preemptions(, at most \d+ s to go|, [\d,]+ of thinking before)?"
    name = "|".join(map(re.escape, [str(key), *steps]))
    step = rf"({name}) (begins(: process \d+, GO [0-9a-f]{{64}})?|(done|ended) after [\d.]+ s(: \w+)?)"
    assert not [line for line in said if not re.fullmatch(f"{step}|{counts}", line)]


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


def test_two_answers_at_once_make_one_generation(stage: Stage) -> None:
    assert "not paused" in stage.notes["twice"]
    experiment = stage.experiment("go")
    assert stage.prefect.generated(experiment) == ["probe@64"]
    assert stage.prefect.kinds(experiment) == ["asked", "go"]


def test_a_late_approval_is_refused_as_expired_and_recorded(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("late")
    waiting = stage.launches["late"]
    prefect.wait(waiting, lambda run: bool(prefect.kinds(experiment)))
    [asked] = load_chain(chain_path(prefect.checkout.workspace().approvals, experiment), experiment)
    while format_utc(datetime.now(UTC)) <= asked.statement["deadline"]:
        time.sleep(0.2)
    with pytest.raises(GoRefused):
        resume_run(prefect.api, waiting, {"verdict": "GO"})
    assert prefect.wait(waiting, lambda run: run.state_type != "PAUSED").state_type == "FAILED"
    close_overdue(prefect.checkout.workspace(), experiment, datetime.now(UTC))  # as the next ask does
    assert prefect.kinds(experiment) == ["asked", "timed_out"]
    assert prefect.phases(experiment) == []


def test_a_retried_launch_replays_its_answer_and_starts_nothing_again(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("go")
    again = prefect.wait(stage.launches["go"])
    assert again.state_type == "FAILED"  # its GO is used, its phase is done: nothing is due for this ask
    assert "GoRefused" in again.message
    dispatched = {run.run_id for run in prefect.phases(experiment)} - {stage.runs["replayed"].run_id}
    assert dispatched == {stage.runs["first"].run_id}
    assert prefect.generated(experiment) == ["probe@64"]
    assert prefect.kinds(experiment) == ["asked", "go"]


def test_a_hand_off_is_waited_for_and_dispatches(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("owned")
    assert f"hand-off of {GPU_POOL} by {OWNER} []" in stage.notes["without the owner"]
    assert prefect.wait(stage.runs["handoff"]).state_type == "COMPLETED"
    assert prefect.wait(prefect.phase(experiment)).state_name == "Completed"
    assert prefect.kinds(experiment) == ["asked", "go", "handoff"]
    assert prefect.generated(experiment) == ["probe@64"]


def test_ticks_six_seconds_apart_take_an_approved_phase_once(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("window")
    assert stage.runs["delivered"].state_name == "Delivered"
    assert stage.notes["before the window"] == "[]"
    states = [prefect.wait(stage.runs[f"tick {number}"]) for number in (1, 2)]
    assert sorted(state.state_name for state in states) == ["Completed", "Idle"], states
    assert prefect.generated(experiment) == ["probe@64"]


def test_a_study_runs_through_its_deployment_and_is_verified(stage: Stage) -> None:
    prefect = stage.prefect
    ended = prefect.wait(stage.runs["study"])
    assert ended.state_name == "Completed", ended.message
    assert ended.message == "small: 3 runs, 1 of 1 cells complete"
    assert (prefect.checkout.folder / "data" / "studies" / "small" / "receipt.json").exists()
    found = prefect.api.find("/artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [ended.run_id]}}})
    assert "w12-none-p14-worst_case-n12" in next(card["data"] for card in found if card["key"] == "study")


def test_a_replayed_go_is_refused_by_the_gpu_host(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("go")
    ended = prefect.wait(stage.runs["replayed"])
    assert ended.state_type == "FAILED"
    assert "was used already" in ended.message
    assert prefect.generated(experiment) == ["probe@64"]


def test_conflicts_between_prefect_and_disk_are_named(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("go")
    run = stage.runs["first"]
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


def test_edited_or_shortened_approvals_contradict_what_was_dispatched(stage: Stage) -> None:
    prefect, experiment = stage.prefect, stage.experiment("go")
    runs = {
        "launches": [stage.runs["answered"]],
        "phases": [stage.runs["first"]],
        "used": [str(stage.runs["first"].parameters["go_sha256"])],
    }
    chain = load_chain(chain_path(prefect.checkout.workspace().approvals, experiment), experiment)
    assert audit_approvals(chain, **runs) == ()
    late = chain[-1].model_copy(update={"recorded": "2031-01-01T00:00:00Z"})
    [edited] = {*audit_approvals((*chain[:-1], late), **runs)}
    assert f"got {late.sha256}, need {chain[-1].sha256}" in edited
    assert "line 2 of the approvals is not what run" in edited
    gone = audit_approvals(chain[:-1], **runs)
    assert f"the GO {runs['used'][0]} of a preflight is not in the approvals" in gone
    assert any("got nothing" in one for one in gone)
    late_copy = {**runs, "used": [], "is_whole": False}  # a reader's, whose last line is on its way
    assert audit_approvals(chain[:-1], **late_copy) == audit_approvals((), **late_copy) == ()
    assert edited in audit_approvals((*chain[:-1], late), **late_copy)
    turned = chain[-1].model_copy(update={"kind": "no_go"})
    assert any(
        "ended as Completed, but the approvals say no_go" in x for x in audit_approvals((turned,), **runs)
    )


def test_the_device_is_free_when_nothing_runs(stage: Stage) -> None:
    prefect = stage.prefect
    deadline = time.monotonic() + 30
    while (slot := prefect.api.read(f"/v2/concurrency_limits/{DEFAULT_SLOT}"))["active_slots"]:
        assert time.monotonic() < deadline, slot
        time.sleep(0.2)
    assert slot["limit"] == 1


def test_nothing_but_what_was_approved_has_run(stage: Stage) -> None:
    prefect = stage.prefect
    workspace = prefect.checkout.workspace()
    for story in stage.launches:
        experiment = stage.experiment(story)
        entries = load_chain(chain_path(workspace.approvals, experiment), experiment)
        assert len(prefect.generated(experiment)) == sum(entry.kind == "go" for entry in entries), story
