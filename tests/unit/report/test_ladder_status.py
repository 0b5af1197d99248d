"""The status line is true in every state of an experiment."""

from dataclasses import replace

import pytest
from support import bundles as make

from fitladder.canonical import Rate
from fitladder.ladder.authorise import NextPhase
from fitladder.records.settings import Thresholds
from fitladder.report.ladder_status import decisions, ladder_state, rung_reached, status_line
from fitladder.report.shares import shares
from fitladder.report.view import PhaseView, Selection, Termination

LIMITS = Thresholds(
    unresolved_rate_below=Rate.parse("0.05"),
    answer_limit_rate_below=Rate.parse("0.05"),
    loop_rate_at_most=Rate.parse("0.25"),
)


def phase(budget: int, state: str = "not run", *, loops: int | None = None, name: str = "probe") -> PhaseView:
    audit = None
    if loops is not None:
        three = shares(loops, 0, 0, 48, LIMITS)
        audit = Termination(
            48, loops, 0, 0, three, all(one.within for one in three), (), (), None, None, 8192, 2048
        )
    return PhaseView(budget, name, "base", state, 4, 12, 3, termination=audit)  # type: ignore[arg-type]


NOT_RUN = (phase(64), phase(96))
REJECTED = (phase(64, "complete", loops=37), phase(96))
BOTH_REJECTED = (phase(64, "complete", loops=37), phase(96, "complete", loops=40))
ADEQUATE = (phase(64, "complete", loops=1), phase(96))
BEGUN = (phase(64, "complete", loops=37), phase(96, "preflight only"))
UNAUDITED = (phase(64, "complete"), phase(96))
NONE = Selection(False, None, "0" * 64, "Every rung to 96 rejected.")
CHOSEN = Selection(True, 64, "0" * 64, "Every phase at 64 adequate.")


@pytest.mark.parametrize(
    ("state", "phases", "selection", "words", "reason"),
    [
        ("open", NOT_RUN, None, "Not run", "Registered and frozen; no phase has run yet. Next: due."),
        ("open", REJECTED, None, "Open: rung rejected", "Probe at 64. Next: due."),
        ("open", ADEQUATE, None, "Open: adequate", "Probe at 64. Next: due."),
        ("open", BEGUN, None, "Open: preflight only", "Probe at 96. Next: due."),
        ("open", UNAUDITED, None, "Open: not audited", "Probe at 64. Next: due."),
        (
            "stopped",
            BEGUN,
            None,
            "Stopped",
            "Rejected at 64 thinking tokens. The probe at 96 ended after its preflight, before any row.",
        ),
        ("stopped", NOT_RUN, None, "Stopped", "No phase was begun."),
        (
            "open",
            BOTH_REJECTED,
            NONE,
            "Terminal: nothing selected",
            "Rejected at 64 and 96 thinking tokens. No rung was adequate; selected is null.",
        ),
        (
            "terminal",
            BOTH_REJECTED,
            None,
            "Terminal: no selection is recorded",
            "Rejected at 64 and 96 thinking tokens.",
        ),
        ("terminal", NOT_RUN, None, "Terminal: no selection is recorded", "No rung was audited."),
        ("open", ADEQUATE, CHOSEN, "Selected: the rung of 64 tokens", "Every phase at 64 adequate."),
    ],
)
def test_the_status_line(
    state: str, phases: tuple[PhaseView, ...], selection: Selection | None, words: str, reason: str
) -> None:
    experiment = make.experiment().model_copy(update={"state": state})
    found = status_line(experiment, phases, selection, NextPhase("open", None, None, "due"))
    assert (found.words, found.reason) == (words, reason)


def test_the_end_of_the_ladder_is_the_state_whatever_is_registered() -> None:
    experiment = make.experiment()
    assert experiment.state == "open"
    assert [ladder_state(experiment, one) for one in (None, NONE, CHOSEN)] == ["open", "terminal", "selected"]


def test_decisions_name_what_they_authorise_and_nothing_more() -> None:
    experiment = make.experiment()
    first, second = decisions(experiment, BOTH_REJECTED)
    assert first.reason == "loops 37 of 48, ceiling at most 25\u00a0%"
    assert first.next_step.startswith("only a fresh probe at 96")
    assert second.next_step.startswith("nothing: this was the last rung")
    (adequate,) = decisions(experiment, ADEQUATE)
    assert adequate.next_step == "the base phase at 64, under its own GO"
    last = replace(ADEQUATE[0], phase="designed")
    assert decisions(experiment, (last,))[0].next_step == "selection of this rung"


def test_the_rung_reached_is_the_furthest_that_was_begun() -> None:
    assert rung_reached(NOT_RUN) == "none yet"
    assert rung_reached(BEGUN) == "probe at 96 (preflight only)"
