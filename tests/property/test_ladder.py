"""Ladders of every shape against a naive reading of the rule; text has no say in any of it."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support import bundles as make

from fitladder.canonical import canonical_sha256
from fitladder.ladder.authorise import next_phase
from fitladder.ladder.outcome import interrupted, judged_outcome
from fitladder.ladder.select import select
from fitladder.ladder.walk import walk
from fitladder.records.experiment import PHASES, Experiment
from fitladder.records.outcome import PhaseOutcome

BUDGETS = (64, 96, 128, 1_024)
EXPERIMENT: Experiment = make.experiment(rungs=[(budget, 2) for budget in BUDGETS], records=6, k=(2, 5))


def _audit(budget: int, phase: Any, unresolved: int, limited: int, loops: int) -> dict[str, Any]:
    samples = 6 * EXPERIMENT.k(phase)
    adequate = unresolved * 20 < samples and limited * 20 < samples and loops * 4 <= samples
    return {
        "bundle": make.key(budget, phase),
        "expected_samples": samples,
        "samples": samples,
        "unresolved_cap_contacts": unresolved,
        "answer_limit_contacts": limited,
        "periodic_loop_contacts": loops,
        "adequate": adequate,
    }


def _outcome(audit: dict[str, Any]) -> PhaseOutcome:
    """Whatever else an audit says (text, correctness) is in its digest alone."""
    said = {name: value for name, value in audit.items() if name != "bundle"}
    counts = {name: value for name, value in said.items() if name not in ("decoded", "hidden_correct")}
    digests = {"receipt_sha256": "a" * 64, "audit_sha256": canonical_sha256(said)}
    return judged_outcome(EXPERIMENT, audit["bundle"], **counts, preemptions=0, **digests)


@st.composite
def climbs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The audits of a ladder that was climbed by the rule, cut off anywhere."""
    audits: list[dict[str, Any]] = []
    for budget in BUDGETS:
        for phase in PHASES:
            if draw(st.integers(0, 12)) == 0:
                return audits
            counts = draw(st.tuples(*(st.integers(0, 2),) * 2, st.integers(0, 8)))
            audits.append(_audit(budget, phase, *counts))
            if not audits[-1]["adequate"]:
                break
        else:
            return audits
    return audits


@settings(max_examples=300, deadline=None)
@given(climbs(), st.randoms(use_true_random=False))
def test_a_ladder_stands_where_a_naive_reader_puts_it(audits: list[dict[str, Any]], random: Any) -> None:
    history = [_outcome(audit) for audit in audits]
    shuffled = random.sample(history, len(history))
    selected, rejected, due = None, [], None
    for budget in BUDGETS:
        verdicts = [one["adequate"] for one in audits if one["bundle"].thinking_budget_tokens == budget]
        if not all(verdicts):
            rejected.append(budget)
        elif len(verdicts) == len(PHASES):
            selected = budget
            break
        else:
            due = make.key(budget, PHASES[len(verdicts)])
            break
    position = walk(EXPERIMENT, shuffled)
    assert next_phase(EXPERIMENT, shuffled).key == due
    assert position.selected_budget_tokens == selected
    assert [budget for budget, status in position.rungs.items() if status == "rejected"] == rejected
    if due is None:
        selection = select(EXPERIMENT, shuffled)
        assert (selection.passed, selection.selected) == (selected is not None, selected)
    else:
        assert due not in {outcome.key for outcome in history}
        blocked = [*history, interrupted(due)]
        assert next_phase(EXPERIMENT, blocked).key is None


@settings(max_examples=100, deadline=None)
@given(climbs(), st.text(), st.lists(st.booleans()))
def test_text_and_correctness_never_change_a_selection(
    audits: list[dict[str, Any]], text: str, correct: list[bool]
) -> None:
    plain = [_outcome(audit) for audit in audits]
    told = [_outcome({**audit, "decoded": ascii(text), "hidden_correct": correct}) for audit in audits]
    assert next_phase(EXPERIMENT, plain) == next_phase(EXPERIMENT, told)
    if walk(EXPERIMENT, plain).state in ("selected", "exhausted"):
        one, other = select(EXPERIMENT, plain), select(EXPERIMENT, told)
        assert (one.passed, one.selected, one.reason) == (other.passed, other.selected, other.reason)
