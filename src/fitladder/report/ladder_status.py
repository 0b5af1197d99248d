"""Decision of each phase and the status line of a page, in words.

The rule is the ladder's; this only says it. A rejection authorises the next rung's fresh probe alone.
"""

from dataclasses import dataclass

from fitladder.ladder.authorise import NextPhase
from fitladder.records.experiment import PHASES, Experiment
from fitladder.report.view import Decision, PhaseView, Selection

__all__ = ["Status", "decisions", "ladder_state", "rung_reached", "status_line"]


@dataclass(frozen=True)
class Status:
    """The status line: a few words, and the sentence behind them."""

    words: str
    reason: str


def decisions(experiment: Experiment, phases: tuple[PhaseView, ...]) -> tuple[Decision, ...]:
    """One line for every begun one of `phases`, with what it authorises under the rungs of `experiment`."""
    return tuple(_decision(experiment, phase) for phase in phases if phase.state != "not run")


def _decision(experiment: Experiment, phase: PhaseView) -> Decision:
    audit = phase.termination
    if audit is None:
        if phase.state == "complete":
            return Decision(
                phase.label, "not audited", "the bundle is complete, its audit was not made", "nothing"
            )
        stopped = experiment.state == "stopped"
        return Decision(
            phase.label,
            "interrupted" if stopped else "preflight only",
            "the live gates passed; the phase ended before any row" if stopped else "begun, no receipt",
            "nothing; the experiment was stopped"
            if stopped
            else "nothing until it has a receipt; interrupted, it is begun again under a fresh GO",
        )
    broken = [
        f"{share.name} {share.count} of {share.total}, ceiling {share.ceiling_text}"
        for share in audit.shares
        if not share.within
    ]
    if not audit.adequate:
        return Decision(
            phase.label,
            "rung rejected",
            "; ".join(broken) or "incomplete",
            _after_rejection(experiment, phase),
        )
    return Decision(phase.label, "adequate", "all three shares within their ceilings", _after_adequate(phase))


def _after_rejection(experiment: Experiment, phase: PhaseView) -> str:
    later = [rung for rung in experiment.rungs if rung.thinking_budget_tokens > phase.thinking_budget_tokens]
    if not later:
        return "nothing: this was the last rung, the ladder ends with none selected"
    rung = later[0]
    return (
        f"only a fresh probe at {rung.thinking_budget_tokens:,} ({rung.max_num_seqs} wide), under its own GO"
    )


def _after_adequate(phase: PhaseView) -> str:
    at = PHASES.index(phase.phase)
    if at + 1 == len(PHASES):
        return "selection of this rung"
    return f"the {PHASES[at + 1]} phase at {phase.thinking_budget_tokens:,}, under its own GO"


def rung_reached(phases: tuple[PhaseView, ...]) -> str:
    """The furthest phase that was begun."""
    begun = [phase for phase in phases if phase.state != "not run"]
    return f"{begun[-1].label} ({begun[-1].state})" if begun else "none yet"


def ladder_state(experiment: Experiment, selection: Selection | None) -> str:
    """`selected` or `terminal` once a `selection` is recorded; else the registered state of `experiment`."""
    if selection is None:
        return experiment.state
    return "selected" if selection.passed else "terminal"


def status_line(
    experiment: Experiment,
    phases: tuple[PhaseView, ...],
    selection: Selection | None,
    authorised: NextPhase | None,
) -> Status:
    """The status line of the page.

    Args:
        experiment: the registered experiment.
        phases: its phases in ladder order.
        selection: the recorded end of the ladder; None where it has none.
        authorised: what the ladder authorises next; None where an audit is missing or history ended.
    """
    if selection is not None and selection.passed:
        rung = f"{selection.selected_budget_tokens:,}" if selection.selected_budget_tokens else "none"
        return Status(
            f"Selected: the rung of {rung} tokens", selection.reason or "Every phase of it was adequate."
        )
    rejected = [phase for phase in phases if phase.termination and not phase.termination.adequate]
    if selection is not None:
        return Status(
            "Terminal: nothing selected", f"{_rejections(rejected)} No rung was adequate; selected is null."
        )
    if experiment.state == "stopped":
        half = [phase.label for phase in phases if phase.state == "preflight only"]
        rest = f" The {' and the '.join(half)} ended after its preflight, before any row." if half else ""
        said = f"{_rejections(rejected)}{rest}".strip()
        return Status("Stopped", said or f"{_last(phases)}.")
    if experiment.state == "terminal":
        return Status("Terminal: no selection is recorded", _rejections(rejected) or "No rung was audited.")
    begun = decisions(experiment, phases)
    rest = f" Next: {authorised.reason}." if authorised is not None else ""
    if not begun:
        return Status("Not run", f"Registered and frozen; no phase has run yet.{rest}")
    last = begun[-1]
    return Status(f"Open: {last.outcome}", f"{last.subject[0].upper()}{last.subject[1:]}.{rest}")


def _last(phases: tuple[PhaseView, ...]) -> str:
    reached = rung_reached(phases)
    return "No phase was begun" if reached == "none yet" else f"It reached the {reached}"


def _rejections(rejected: list[PhaseView]) -> str:
    if not rejected:
        return ""
    rungs = " and ".join(f"{phase.thinking_budget_tokens:,}" for phase in rejected)
    return f"Rejected at {rungs} thinking tokens."
