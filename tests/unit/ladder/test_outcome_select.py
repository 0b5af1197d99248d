"""Outcomes bear out their counts; the selection is explicit, recomputed, and never replaced."""

from typing import Any

import pytest
from pydantic import ValidationError

from fitladder.canonical import canonical_bytes, parse_json, parse_model
from fitladder.errors import LadderRefused
from fitladder.ladder.outcome import outcome_of
from fitladder.ladder.select import check_recomputed, finalise, select
from fitladder.records.experiment import Experiment
from fitladder.records.outcome import PhaseOutcome
from fitladder.records.selection import Selection

PHASES = ("probe", "base", "designed")


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
def test_counts_decide_by_integers(experiment: Experiment, audit: Any, counts: Any, adequate: bool) -> None:
    plain = audit(49_152, "probe", **{**counts, "adequate": adequate})
    found = outcome_of(experiment, plain, receipt_sha256="a" * 64, preemptions=0)
    assert found.adequate is adequate
    lying = {**plain, "adequate": not adequate}
    with pytest.raises(LadderRefused, match="contradicts its counts"):
        outcome_of(experiment, lying, receipt_sha256="a" * 64, preemptions=0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"samples": True}, "integers"),
        ({"samples": 48.0}, "integers"),
        ({"samples": -1}, "integers"),
        ({"expected_samples": 47}, "need 48"),
        ({"bundle": {}}, "without its counts"),
    ],
)
def test_audits_that_are_none(experiment: Experiment, audit: Any, change: Any, words: str) -> None:
    with pytest.raises(LadderRefused, match=words):
        outcome_of(experiment, {**audit(49_152, "probe"), **change}, receipt_sha256="a" * 64, preemptions=0)
    lacking = {name: value for name, value in audit(49_152, "probe").items() if name != "samples"}
    with pytest.raises(LadderRefused, match="without its counts"):
        outcome_of(experiment, lacking, receipt_sha256="a" * 64, preemptions=0)


def test_preemptions_flag_the_rung(experiment: Experiment, audit: Any) -> None:
    found = outcome_of(experiment, audit(49_152, "probe"), receipt_sha256="a" * 64, preemptions=37)
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
