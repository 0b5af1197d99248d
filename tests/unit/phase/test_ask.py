"""Asks, answers and hand-offs: recorded once, rechecked from disk, closed when nobody answers."""

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.approvals import approve, ask_for, filled, key_of, make_key, run_whole_phase
from support.checkout import EXPERIMENT, ROOT, ScriptedCheckout, make_scripted_checkout

from fitladder.approval.chain import chain_path, load_chain
from fitladder.approval.form import ask_of_schema, decision_form, go_of
from fitladder.approval.signature import sign
from fitladder.canonical import canonical_sha256
from fitladder.errors import BindingChanged, GoRefused, LadderRefused, RootBusy
from fitladder.evidence import load as evidence_loading
from fitladder.evidence.load import Evidence, load_evidence
from fitladder.phase import run
from fitladder.phase.ask import close_overdue, decide, open_ask, record_handoff
from fitladder.phase.dispatch import check_ready, window_go
from fitladder.phase.expectation import expected_pool, expected_speed, fit_line
from fitladder.phase.plan import plan_phase, render_plan
from fitladder.phase.run import adopt_approvals
from fitladder.phase.status import experiment_status
from fitladder.records.binding import Binding
from fitladder.records.experiment import Experiment
from fitladder.registry.binding import bind
from fitladder.registry.load import load_registry
from fitladder.workspace import Workspace

PROBE = key_of("probe", 64)


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def made(tmp_path: Path) -> ScriptedCheckout:
    return make_scripted_checkout(tmp_path / "checkout")


def kinds(made: ScriptedCheckout) -> list[str]:
    return [
        entry.kind for entry in load_chain(chain_path(made.workspace().approvals, EXPERIMENT), EXPERIMENT)
    ]


def test_asking_and_answering_again_changes_nothing(made: ScriptedCheckout) -> None:
    workspace = made.workspace()
    ask = ask_for(workspace, PROBE)
    assert ask_for(workspace, PROBE) == ask
    first = decide(workspace, ask, filled(ask), now())
    assert decide(workspace, ask, filled(ask, verdict="NO-GO"), now()) == first
    assert kinds(made) == ["asked", "go"]


@pytest.mark.parametrize(
    ("changes", "kind", "reason"),
    [
        ({"verdict": "NO-GO", "plan_read": False}, "no_go", None),
        ({"reviewer": "Rosa"}, "refused", "given by its requester"),
        ({"binding_sha256": "b" * 64}, "refused", "another binding"),
        ({"plan_read": False}, "refused", "incomplete checklist"),
        ({"expires": "2026-01-02T03:04:05Z"}, "refused", "expires"),
        ({"reviewer": ""}, "refused", "reviewer"),
        ({"signature": "x"}, "refused", "no key is registered"),
        ({"smuggled": 1}, "refused", "smuggled"),
        ({"verdict": "go"}, "refused", "verdict"),
        ({"verdict": "GO\n", "reviewer": " jan "}, "go", None),
        ({"expires": "soon"}, "refused", "expires"),
        ({"allows_window": "yes"}, "refused", "allows_window"),
    ],
)
def test_every_answer_is_recorded_as_what_it_is(made: ScriptedCheckout, changes, kind, reason) -> None:
    ask = ask_for(made.workspace(), PROBE)
    entry = decide(made.workspace(), ask, filled(ask, **changes), now())
    assert entry.kind == kind
    assert reason is None or reason in entry.statement["reason"]
    if kind == "go":
        assert entry.parsed().reviewer == "jan"
        return
    with pytest.raises(GoRefused, match="was not allowed"):
        check_ready(made.workspace(), ask, "gpu", now())


def test_an_empty_form_of_an_automation_is_refused(made: ScriptedCheckout) -> None:
    ask = ask_for(made.workspace(), PROBE)
    assert decide(made.workspace(), ask, {}, now()).kind == "refused"


def test_an_answer_whose_window_is_over_is_expired(made: ScriptedCheckout) -> None:
    ask = ask_for(made.workspace(), PROBE)
    soon = (now() + timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%SZ")
    late = now() + timedelta(seconds=61)
    assert decide(made.workspace(), ask, filled(ask, expires=soon), late).kind == "expired"


def test_a_go_that_expires_before_it_is_dispatched_is_refused(made: ScriptedCheckout) -> None:
    ask = ask_for(made.workspace(), PROBE)
    soon = (now() + timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%SZ")
    decide(made.workspace(), ask, filled(ask, expires=soon), now())
    with pytest.raises(GoRefused, match="has expired"):
        check_ready(made.workspace(), ask, "gpu", now() + timedelta(seconds=62))


def test_an_ask_that_nobody_answers_is_closed_once_and_a_late_answer_changes_nothing(
    made: ScriptedCheckout,
) -> None:
    ask = ask_for(made.workspace(), PROBE, wait_s=60)
    later = now() + timedelta(seconds=65)
    assert close_overdue(made.workspace(), EXPERIMENT, now()) == ()
    assert close_overdue(made.workspace(), EXPERIMENT, later) == (ask,)
    assert close_overdue(made.workspace(), EXPERIMENT, later) == ()
    assert decide(made.workspace(), ask, filled(ask), later).kind == "timed_out"
    assert kinds(made) == ["asked", "timed_out"]


def test_params_changed_between_ask_and_answer_are_refused(made: ScriptedCheckout) -> None:
    ask = ask_for(made.workspace(), PROBE)
    made.section["sampling"]["top_k"] = 21
    made.register()
    entry = decide(made.workspace(), ask, filled(ask), now())
    assert entry.kind == "refused"
    assert ask.binding_sha256 in entry.statement["reason"]


def test_a_signed_go_counts_and_an_unsigned_one_does_not(tmp_path: Path) -> None:
    private, public = make_key(tmp_path, "jan")
    made = make_scripted_checkout(
        tmp_path / "checkout", _reviewers=[{"name": "jan", "ssh_public_key": public}]
    )
    ask = ask_for(made.workspace(), PROBE)
    statement, _ = go_of(ask, filled(ask))
    signed = decide(made.workspace(), ask, filled(ask, signature=sign(statement, private)), now())
    assert (signed.kind, signed.identity) == ("go", "signed")
    receipt = run_whole_phase(made.workspace(), PROBE, signed.parsed().sha256)
    assert receipt.go_identity == "signed"
    base = ask_for(made.workspace(), key_of("base", 64), "ask-2")
    assert decide(made.workspace(), base, filled(base), now()).kind == "refused"


@pytest.mark.parametrize("owner_first", [True, False])
def test_go_and_handoff_in_either_order(tmp_path: Path, owner_first) -> None:
    made = make_scripted_checkout(tmp_path / "checkout", _gpu_owners={"gpu": "olga"})
    workspace, ask = made.workspace(), ask_for(made.workspace(), PROBE)
    form = {"hands_over": True, "owner": "olga", "expires": "2199-01-01T00:00:00Z", "signature": ""}
    steps = [
        lambda: record_handoff(workspace, ask, "gpu", form, now()),
        lambda: decide(workspace, ask, filled(ask), now()),
    ]
    first, second = steps if owner_first else reversed(steps)
    first()
    assert check_ready(workspace, ask, "gpu", now()).waits_for == (
        f"the reviewer's answer to {PROBE}" if owner_first else "the hand-off of gpu by olga"
    )
    second()
    ready = check_ready(workspace, ask, "gpu", now())
    assert ready.waits_for is None
    assert run_whole_phase(workspace, PROBE, ready.parameters["go_sha256"]).rows == 4


def test_without_the_handoff_the_gpu_host_refuses_too(tmp_path: Path) -> None:
    made = make_scripted_checkout(tmp_path / "checkout", _gpu_owners={"gpu": "olga"})
    go = approve(made.workspace(), PROBE)
    with pytest.raises(GoRefused, match="was not handed over"):
        run_whole_phase(made.workspace(), PROBE, go)
    assert made.generated() == []


@pytest.mark.parametrize(
    "changes",
    [{"hands_over": False}, {"owner": "rosa"}, {"expires": "2026-01-02T03:04:05Z"}, {"signature": "x"}],
)
def test_a_handoff_that_is_none_is_refused_and_not_recorded(tmp_path: Path, changes) -> None:
    made = make_scripted_checkout(tmp_path / "checkout", _gpu_owners={"gpu": "olga"})
    ask = ask_for(made.workspace(), PROBE)
    form = {"hands_over": True, "owner": "olga", "expires": "2199-01-01T00:00:00Z", "signature": ""}
    with pytest.raises(GoRefused):
        record_handoff(made.workspace(), ask, "gpu", form | changes, now())
    assert kinds(made) == ["asked"]


def test_another_host_adopts_the_chain_that_came_with_the_run(made: ScriptedCheckout, tmp_path: Path) -> None:
    ask = ask_for(made.workspace(), PROBE)
    decide(made.workspace(), ask, filled(ask), now())
    ready = check_ready(made.workspace(), ask, "gpu", now())
    host = make_scripted_checkout(tmp_path / "gpu-host")
    with pytest.raises(GoRefused, match="no such GO"):
        run_whole_phase(host.workspace(), PROBE, ready.parameters["go_sha256"])
    adopt_approvals(host.workspace(), EXPERIMENT, ready.parameters["approvals"])
    assert run_whole_phase(host.workspace(), PROBE, ready.parameters["go_sha256"]).rows == 4


def test_the_window_takes_only_what_allows_it_and_only_once(made: ScriptedCheckout) -> None:
    ask = ask_for(made.workspace(), PROBE)
    decide(made.workspace(), ask, filled(ask), now())
    assert window_go(made.workspace(), EXPERIMENT, "gpu", now()) is None
    again = ask_for(made.workspace(), PROBE, "ask-2", again=True)
    entry = decide(made.workspace(), again, filled(again, allows_window=True), now())
    go = window_go(made.workspace(), EXPERIMENT, "gpu", now())
    assert go is not None
    assert go.sha256 == entry.parsed().sha256
    assert check_ready(made.workspace(), again, "gpu", now()).parameters["run_now"] is False
    run_whole_phase(made.workspace(), PROBE, go.sha256)
    assert window_go(made.workspace(), EXPERIMENT, "gpu", now()) is None


def test_the_plan_says_what_a_reviewer_has_to_know(made: ScriptedCheckout) -> None:
    ask = ask_for(made.workspace(), PROBE)
    text = render_plan(plan_phase(made.workspace(), ask, "gpu"))
    assert ask.binding_sha256 in text
    for part in (
        "rosa",
        "2 records x 2",
        "4 sequences fit",
        "no other phase",
        "self-asserted",
        "anybody but",
    ):
        assert part in text
    assert len(text.splitlines()) < 45


def test_an_overcommitted_width_is_said_in_one_line(made: ScriptedCheckout) -> None:
    evidence = load_evidence(made.workspace(), EXPERIMENT)
    expected = expected_pool(made.workspace(), evidence)
    assert expected is not None
    rung = evidence.experiment.rungs[0]
    assert fit_line(evidence.experiment, rung, expected.pool, 12) == "12 sequences need 2.0x the pool; 6 fit"


def test_the_forms_schema_carries_the_ask_and_holds_the_hash_as_a_pattern(made: ScriptedCheckout) -> None:
    ask = ask_for(made.workspace(), PROBE)
    schema = decision_form(ask, "2199-01-01T00:00:00Z").model_json_schema()
    assert ask_of_schema(schema) == ask
    binding = schema["properties"]["binding_sha256"]
    assert binding["pattern"] == rf"^\s*{ask.binding_sha256}\s*$"
    assert "default" not in binding
    assert set(schema["required"]) == {"verdict", "reviewer", "binding_sha256"}
    assert schema["additionalProperties"] is False


def test_a_follow_up_on_a_gpu_is_planned_with_what_its_predecessor_recorded(tmp_path: Path) -> None:
    here = Workspace(ROOT, {"NEXT_ROOT": str(tmp_path / "next")})
    registry = load_registry(here.params)
    before = registry.experiment("qwen35_4b_verified_macro_exact_cudagraph_rerun")
    experiment = before.model_copy(
        update={"experiment_id": "some_follow_up", "predecessor": before.experiment_id, "kv_rule": "both"}
    )
    evidence = Evidence(registry, experiment, bind(before), tmp_path / "next", (), (), (), ())
    expected = expected_pool(here, evidence)
    assert expected is not None
    assert (expected.pool.block_size_tokens, expected.pool.kv_cache_size_tokens) == (528, 997888)
    assert before.experiment_id in expected.source
    line = fit_line(experiment, experiment.rungs[0], expected.pool, 19)
    # Planned with the registered longest prompt of both arms: ceil(50,726 / 528) = 97 blocks a sequence.
    assert line.startswith("19 sequences fit: 973,104 of 997,888 tokens (margin 24,784)")
    assert "told by the live gate" in line
    speed = expected_speed(here, evidence, 49152)
    assert speed is not None
    assert round(speed, 3) == 491.396
    stranger = dataclasses.replace(evidence, experiment=experiment.model_copy(update={"predecessor": None}))
    assert expected_pool(here, stranger) is None
    assert expected_speed(here, stranger, 49152) is None


def _bind_moved(experiment: Experiment) -> Binding:
    """Today's binding with one module of decision code that is not what it was."""
    plain = bind(experiment).model_dump(exclude={"binding_sha256"})
    plain["decision_code"]["ladder/select.py"] = "0" * 64
    return Binding(**plain, binding_sha256=canonical_sha256(plain))


def test_after_decision_code_moved_nothing_is_asked_for_that_no_selection_could_count(
    made: ScriptedCheckout, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, base = made.workspace(), key_of("base", 64)
    run_whole_phase(workspace, PROBE, approve(workspace, PROBE))
    asked = ask_for(workspace, base, "ask-2")
    monkeypatch.setattr(evidence_loading, "bind", _bind_moved)
    evidence = load_evidence(
        workspace, EXPERIMENT
    )  # what stands is still read: decision code made none of it
    assert evidence.next.key == base
    with pytest.raises(BindingChanged) as refusal:
        ask_for(workspace, base, "ask-3")
    line = str(refusal.value)
    assert evidence.binding.binding_sha256 in line
    assert evidence.begun[0].binding.binding_sha256 in line
    assert "decision_code.ladder/select.py" in line
    assert f"fitladder new NAME --from {EXPERIMENT}" in line
    status = experiment_status(workspace, evidence.registry, EXPERIMENT)
    assert (status.next_command, status.barred) == (None, line)
    assert decide(workspace, asked, filled(asked), now()).kind == "refused"
    assert kinds(made) == ["asked", "go", "asked", "refused"]
    assert made.generated() == ["probe@64"]


def test_two_launches_of_one_phase_wait_and_only_one_takes_a_go(made: ScriptedCheckout) -> None:
    workspace = made.workspace()
    one, two = ask_for(workspace, PROBE, "ask-1"), ask_for(workspace, PROBE, "ask-2")
    first = decide(workspace, one, filled(one), now())
    second = decide(workspace, two, filled(two), now())
    assert (first.kind, second.kind) == ("go", "refused")
    assert first.parsed().sha256 in second.statement["reason"]
    with pytest.raises(GoRefused, match="was not allowed"):
        check_ready(workspace, two, "gpu", now())
    with pytest.raises(GoRefused, match=r"an unused GO .* stands already.*--again"):
        ask_for(workspace, PROBE, "ask-3")
    assert kinds(made) == ["asked", "asked", "go", "refused"]
    later = now() + timedelta(days=70_000)  # the first GO is over: nothing is in the way any more
    open_ask(workspace, PROBE, ask_id="ask-4", requester="rosa", now=later, wait_s=60)


def test_two_gos_of_one_phase_begin_it_once(made: ScriptedCheckout) -> None:
    workspace = made.workspace()
    lost = approve(workspace, PROBE, "ask-1")
    again = ask_for(workspace, PROBE, "ask-2", again=True)
    other = decide(workspace, again, filled(again), now()).parsed().sha256
    assert lost != other
    with (
        run.hold_phase(workspace, PROBE, "gpu"),
        pytest.raises(RootBusy),
        run.hold_phase(workspace, PROBE, "gpu"),
    ):
        pass
    run_whole_phase(workspace, PROBE, other)
    with (
        run.hold_phase(workspace, PROBE, "gpu") as held,
        pytest.raises(LadderRefused, match="is not authorised"),
    ):
        run.authorise(held, lost)
    assert run_whole_phase(workspace, PROBE, lost).go_sha256 == other  # the receipt that stands
    assert made.generated() == ["probe@64"]
