"""Position of a ladder: its whole history walked in order, rung by rung, phase by phase.

Numeric order of budgets; within a rung probe, base, designed. An outcome where nothing was authorised stops
everything. Pure: outcomes in, one position out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fitladder.errors import LadderRefused
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import PHASES, Experiment
from fitladder.records.outcome import PhaseOutcome
from fitladder.records.selection import RungStatus

__all__ = ["Position", "rung_name", "walk"]


@dataclass(frozen=True)
class Position:
    """The end of the recorded history.

    `state`: `open` (next_key is due), `interrupted` (next_key has a preflight and no receipt), `incomplete`
    (a receipt lacks samples), `selected`, `exhausted` (every rung rejected). `rungs` maps budget to status.
    """

    state: Literal["open", "interrupted", "incomplete", "selected", "exhausted"]
    next_key: BundleKey | None
    selected_budget_tokens: int | None
    rungs: dict[int, RungStatus]
    reason: str


def rung_name(budget_tokens: int) -> str:
    """49152 -> `49k`, 1024 -> `1k`, 512 -> `512`: thousands, rounded down, as people say it."""
    return f"{budget_tokens // 1000}k" if budget_tokens >= 1000 else str(budget_tokens)


def walk(experiment: Experiment, history: Sequence[PhaseOutcome]) -> Position:
    """The position after this history, in whatever order it is given.

    Raises LadderRefused on an outcome of another experiment or rung, on two of one phase, and on any outcome
    that the ladder could not have authorised.
    """
    left = _by_key(experiment, history)
    rungs: dict[int, RungStatus] = dict.fromkeys(sorted(_budgets(experiment)), "not_reached")
    for budget in rungs:
        rungs[budget] = "begun"
        position = _walk_rung(experiment, budget, left, rungs)
        if position is not None:
            _check_nothing_left(left, position)
            return position
    position = Position(
        "exhausted",
        None,
        None,
        rungs,
        f"every rung to {rung_name(max(rungs))} rejected: pass false, selected null",
    )
    _check_nothing_left(left, position)
    return position


def _budgets(experiment: Experiment) -> list[int]:
    return [rung.thinking_budget_tokens for rung in experiment.rungs]


def _by_key(experiment: Experiment, history: Sequence[PhaseOutcome]) -> dict[BundleKey, PhaseOutcome]:
    found: dict[BundleKey, PhaseOutcome] = {}
    for outcome in history:
        key = outcome.key
        if key.experiment_id != experiment.experiment_id:
            raise LadderRefused("an outcome of another experiment", got=key, need=experiment.experiment_id)
        if key.thinking_budget_tokens not in _budgets(experiment):
            raise LadderRefused("an outcome of no registered rung", got=key, need=_budgets(experiment))
        if key in found:
            raise LadderRefused("a phase has two outcomes", got=key, need="one bundle a phase")
        found[key] = outcome
    return found


def _walk_rung(
    experiment: Experiment,
    budget: int,
    left: dict[BundleKey, PhaseOutcome],
    rungs: dict[int, RungStatus],
) -> Position | None:
    """Take this rung's outcomes out of `left`; None where the rung is rejected and the next one follows."""
    name = rung_name(budget)
    for phase in PHASES:
        key = BundleKey(experiment_id=experiment.experiment_id, thinking_budget_tokens=budget, phase=phase)
        outcome = left.pop(key, None)
        if outcome is None:
            return Position("open", key, None, rungs, _due(budget, phase, rungs))
        if outcome.state == "preflight_only":
            return Position("interrupted", key, None, rungs, f"{name} {phase}: preflight only, no receipt")
        if outcome.incomplete:
            reason = f"{name} {phase}: {outcome.samples} of {outcome.expected_samples} samples"
            return Position("incomplete", None, None, rungs, reason)
        if not outcome.adequate:
            rungs[budget] = "rejected"
            return None
    rungs[budget] = "selected"
    return Position("selected", None, budget, rungs, f"{name}: probe, base and designed are adequate")


def _due(budget: int, phase: str, rungs: dict[int, RungStatus]) -> str:
    rejected = [rung_name(other) for other, status in rungs.items() if status == "rejected"]
    if phase == "probe":
        return f"a fresh probe at {rung_name(budget)}" + (
            f", {', '.join(rejected)} being rejected" if rejected else ", the first rung"
        )
    before = PHASES[PHASES.index(phase) - 1]
    return f"{phase} at {rung_name(budget)}, its {before} being adequate"


def _check_nothing_left(left: dict[BundleKey, PhaseOutcome], position: Position) -> None:
    if left:
        first = min(left, key=lambda key: (key.thinking_budget_tokens, PHASES.index(key.phase)))
        raise LadderRefused(
            "a bundle stands where nothing was authorised",
            got=first,
            need=f"nothing beyond: {position.reason}",
            do="find out where it came from; nothing of this experiment is believed until then",
        )
