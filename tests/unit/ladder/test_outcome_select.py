"""Outcomes bear out their counts; the selection is explicit, recomputed, and never replaced."""

from typing import Any

import pytest
from pydantic import ValidationError
from support import bundles as make

from fitladder.canonical import canonical_bytes, canonical_sha256, parse_json, parse_model
from fitladder.errors import LadderRefused, LineageError
from fitladder.evidence.audit_bundle import audit_bundle
from fitladder.ladder.outcome import outcome_of
from fitladder.ladder.select import check_recomputed, finalise, select
from fitladder.records.audit import TerminationAudit
from fitladder.records.experiment import Experiment
from fitladder.records.outcome import PhaseOutcome
from fitladder.records.selection import Selection
from fitladder.store.verify_root import verify_root

PHASES = ("probe", "base", "designed")
COUNTS = ("samples", "unresolved_cap_contacts", "answer_limit_contacts", "periodic_loop_contacts")


@pytest.mark.parametrize(
    ("counts", "adequate"),
    [
        ({"unresolved_cap_contacts": 2}, True),
        ({"unresolved_cap_contacts": 3}, False),
        ({"answer_limit_contacts": 2}, True),
        ({"answer_limit_contacts": 3}, False),
        ({"periodic_loop_contacts": 12}, True),
        ({"periodic_loop_contacts": 13}, False),
        ({"samples": 47}, False),
        ({"samples": 0}, False),
    ],
)
def test_case_31_counts_decide_by_integers(judge: Any, audit: Any, counts: Any, adequate: bool) -> None:
    plain = audit(49_152, "probe", **{**counts, "adequate": adequate})
    found = judge(plain)
    assert found.adequate is adequate
    lying = {**plain, "adequate": not adequate}
    with pytest.raises(LadderRefused, match="contradicts its counts"):
        judge(lying)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"samples": True}, "integers"),
        ({"samples": 48.0}, "integers"),
        ({"samples": -1}, "integers"),
        ({"expected_samples": 47}, "need 48"),
    ],
)
def test_counts_that_are_none(judge: Any, audit: Any, change: Any, words: str) -> None:
    with pytest.raises(LadderRefused, match=words):
        judge({**audit(49_152, "probe"), **change})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> TerminationAudit:
    """The audit of a true bundle."""
    of = make.experiment()
    root = make.make_root(tmp_path_factory.mktemp("bundle") / "root", of)
    return audit_bundle(verify_root(root, of.experiment_id).bundles[0], of)


def test_an_audits_own_counts_and_bytes_become_the_outcome(whole: TerminationAudit) -> None:
    found = outcome_of(make.experiment(), whole, receipt_sha256="a" * 64, preemptions=3)
    for name in (*COUNTS, "expected_samples", "adequate"):
        assert getattr(found, name) == getattr(whole, name)
    assert (found.key, found.samples, found.preemptions) == (make.key(), 4, 3)
    assert found.audit_sha256 == canonical_sha256(parse_json(canonical_bytes(whole), where="audit"))


@pytest.mark.parametrize("change", [{"bundle": {}}, *({name: None} for name in COUNTS)])
def test_an_audit_file_without_its_counts_is_none(whole: TerminationAudit, change: Any) -> None:
    plain = parse_json(canonical_bytes(whole), where="audit")
    assert parse_model(TerminationAudit, plain, where="audit", error=LineageError) == whole
    lacking = {name: value for name, value in {**plain, **change}.items() if value is not None}
    with pytest.raises(LineageError, match=next(iter(change))):
        parse_model(TerminationAudit, lacking, where="audit", error=LineageError)


def test_case_13_d_preemptions_flag_the_rung(judge: Any, audit: Any) -> None:
    found = judge(audit(49_152, "probe"), preemptions=37)
    assert found.preemptions == 37
    again = parse_model(PhaseOutcome, parse_json(canonical_bytes(found), where="x"), where="x")
    assert again == found


def test_an_outcome_is_whole(key: Any, done: Any) -> None:
    with pytest.raises(ValidationError, match="preflight_only phase with only"):
        PhaseOutcome(key=key(49_152, "probe"), state="preflight_only", samples=3)
    with pytest.raises(ValidationError, match="complete phase with only"):
        PhaseOutcome(key=key(49_152, "probe"), state="complete", samples=3)


def test_the_first_fully_adequate_rung_is_selected(experiment: Experiment, done: Any) -> None:
    for rejected, selected in (([], 49_152), ([done(49_152, "probe", False)], 61_440)):
        found = select(experiment, [*rejected, *(done(selected, phase) for phase in PHASES)])
        assert (found.passed, found.selected) == (True, selected)
        plain = parse_json(canonical_bytes(found), where="selection")
        assert (plain["pass"], plain["selected"]) == (True, selected)
        assert parse_model(Selection, plain, where="selection") == found


def test_terminal_null_is_explicit(experiment: Experiment, done: Any) -> None:
    found = select(experiment, [done(49_152, "probe", False), done(61_440, "probe", False)])
    plain = parse_json(canonical_bytes(found), where="selection")
    assert (plain["pass"], plain["selected"]) == (False, None)
    assert [(rung["thinking_budget_tokens"], rung["status"]) for rung in plain["rungs"]] == [
        (49_152, "rejected"),
        (61_440, "rejected"),
    ]


def test_an_open_ladder_has_no_selection(experiment: Experiment, done: Any, begun: Any) -> None:
    for history in ([], [done(49_152, "probe")], [begun(49_152, "probe")]):
        with pytest.raises(LadderRefused, match="has no selection"):
            select(experiment, history)


def test_a_selection_says_one_thing(experiment: Experiment, done: Any) -> None:
    found = select(experiment, [done(49_152, phase) for phase in PHASES])
    plain = found.model_dump(mode="json")
    for change in ({"pass": False}, {"selected": None}, {"selected": 61_440}):
        with pytest.raises(LadderRefused):
            parse_model(Selection, {**plain, **change}, where="selection", error=LadderRefused)


def test_finalising_twice_gives_the_same_bytes(experiment: Experiment, done: Any) -> None:
    history = [done(49_152, "probe", False), done(61_440, "probe", False)]
    first = finalise(experiment, history, history)
    assert canonical_bytes(finalise(experiment, history[::-1], history, first)) == canonical_bytes(first)


def test_a_decision_is_never_replaced(experiment: Experiment, done: Any) -> None:
    history = [done(49_152, "probe", False), done(61_440, "probe", False)]
    first = finalise(experiment, history, history)
    other = [done(49_152, phase) for phase in PHASES]
    with pytest.raises(LadderRefused, match=r"already decided: got selected 49152.*need selected None"):
        finalise(experiment, other, other, first)


def test_recomputed_and_recorded_must_be_equal(experiment: Experiment, done: Any) -> None:
    history = [done(49_152, "probe", False), done(61_440, "probe", False)]
    nearly = done(49_152, "probe", False, unresolved_cap_contacts=47)
    with pytest.raises(
        LadderRefused, match="49k probe: unresolved_cap_contacts is not what was recorded: got 47, need 48"
    ):
        finalise(experiment, history, [nearly, history[1]])
    noted = done(49_152, "probe", False, warnings=["another text"])
    with pytest.raises(LadderRefused, match="audit_sha256"):
        check_recomputed(history, [noted, history[1]])
    with pytest.raises(LadderRefused, match="probe@61440 is recorded, but no bundle"):
        check_recomputed(history, history[:1])
    with pytest.raises(LadderRefused, match="probe@61440 is not recorded"):
        check_recomputed(history[:1], history)
    with pytest.raises(LadderRefused, match="two outcomes"):
        check_recomputed([*history, history[0]], history)
