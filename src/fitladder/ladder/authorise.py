"""The phase that may be asked for now, and the check that it is the one asked for. One at a time.

The ladder says what is due; whether it runs is a reviewer's GO. A stopped or terminal experiment, an
interrupted or an incomplete phase authorises nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fitladder.errors import LadderRefused
from fitladder.ladder.walk import walk
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Experiment
from fitladder.records.outcome import PhaseOutcome

__all__ = ["NextPhase", "check_authorised", "next_phase"]


@dataclass(frozen=True)
class NextPhase:
    """What the ladder authorises. `key` may be asked for; `resumable` only by who says that it is resumed.

    Both are None where nothing is authorised; `reason` says why in one line.
    """

    state: Literal["open", "interrupted", "incomplete", "selected", "exhausted", "stopped", "terminal"]
    key: BundleKey | None
    resumable: BundleKey | None
    reason: str


def next_phase(experiment: Experiment, history: Sequence[PhaseOutcome]) -> NextPhase:
    """The one phase that is due, from the whole history. Raises LadderRefused on a history that cannot be.

    A preflight without a receipt blocks the ladder: the same phase may be resumed, which is another attempt
    from its first row under a GO of its own, and nothing else is authorised until it has its receipt.
    """
    position = walk(experiment, history)
    if experiment.state != "open":
        where = position.reason
        if position.state == "interrupted" and position.next_key is not None:
            where = f"at {where.split(' ')[0]} preflight only"
        elif position.state == "open":
            where = f"before {where}"
        return NextPhase(experiment.state, None, None, f"{experiment.state} {where}")
    if position.state == "interrupted":
        return NextPhase("interrupted", None, position.next_key, position.reason)
    return NextPhase(position.state, position.next_key, None, position.reason)


def check_authorised(
    experiment: Experiment, history: Sequence[PhaseOutcome], key: BundleKey, *, resume: bool = False
) -> None:
    """Raises LadderRefused unless this phase, at this rung, is the one that is due.

    `resume`: it is to be begun again after an interruption; refused for a phase that was not interrupted.
    """
    due = next_phase(experiment, history)
    allowed = due.resumable if resume else due.key
    if key == allowed:
        return
    do: str | None = None
    if (asked := due.key or due.resumable) is not None:
        again = " --resume" if due.resumable else ""
        do = f"run `fitladder launch {asked.experiment_id} --phase {asked.phase} --budget "
        do += f"{asked.thinking_budget_tokens}{again}`" + (": resume it under a fresh GO" if again else "")
    raise LadderRefused(
        f"{key} is not authorised" + (" to resume" if resume else ""),
        got=due.reason,
        need=allowed or "nothing: this ladder authorises no phase",
        do=do,
    )
