"""Which phase may be asked for now, and may this one run? One phase at a time, never by itself.

The ladder says what is due; whether it runs is a reviewer's GO. A stopped or terminal experiment, an
interrupted or an incomplete phase authorises nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fitladder.errors import LadderRefused
from fitladder.ladder.outcome import PhaseOutcome
from fitladder.ladder.walk import walk
from fitladder.protocol.experiment import Experiment
from fitladder.protocol.key import BundleKey

__all__ = ["NextPhase", "check_authorised", "next_phase"]


@dataclass(frozen=True)
class NextPhase:
    """What the ladder authorises. `key` may be asked for; `resumable` only by an owner who says so.

    Both are None where nothing is authorised; `reason` says why in one line.
    """

    state: Literal["open", "interrupted", "incomplete", "selected", "exhausted", "stopped", "terminal"]
    key: BundleKey | None
    resumable: BundleKey | None
    reason: str


def next_phase(experiment: Experiment, history: Sequence[PhaseOutcome]) -> NextPhase:
    """The one phase that is due, from the whole history. Raises LadderRefused on a history that cannot be.

    A preflight without a receipt blocks the ladder: the same phase may be resumed under a fresh GO, and
    nothing else is authorised until it has its receipt.
    """
    position = walk(experiment, history)
    if experiment.state != "open":
        where = position.reason
        if position.state == "interrupted" and position.next_key is not None:
            where = f"at {where.split(' ')[0]} preflight only"
        return NextPhase(experiment.state, None, None, f"{experiment.state} {where}")
    if position.state == "interrupted":
        return NextPhase("interrupted", None, position.next_key, position.reason)
    return NextPhase(position.state, position.next_key, None, position.reason)


def check_authorised(
    experiment: Experiment, history: Sequence[PhaseOutcome], key: BundleKey, *, resume: bool = False
) -> None:
    """Raises LadderRefused unless this phase, at this rung, is the one that is due.

    `resume`: the owner wants to begin an interrupted phase again, under a fresh GO; refused for any other.
    """
    due = next_phase(experiment, history)
    allowed = due.resumable if resume else due.key
    if key == allowed:
        return
    if due.resumable == key:
        do: str | None = "ask its owner to resume it under a fresh GO"
    elif due.key is not None:
        do = f"run `fitladder launch {due.key.experiment_id} --phase {due.key.phase} --budget "
        do += f"{due.key.thinking_budget_tokens}`"
    else:
        do = None
    raise LadderRefused(
        f"{key} is not authorised" + (" to resume" if resume else ""),
        got=due.reason,
        need=allowed or "nothing: this ladder authorises no phase",
        do=do,
    )
