"""The selection: one rung, or explicitly none, decided once from the whole recomputed history.

The first rung whose probe, base and designed are adequate; if the last one fails, `pass: false,
selected: null`. Content-blind: correctness and text have no place in it.
"""

from collections.abc import Sequence

from fitladder.canonical import canonical_sha256
from fitladder.errors import LadderRefused
from fitladder.ladder.walk import rung_name, walk
from fitladder.records.experiment import PHASES, Experiment
from fitladder.records.outcome import PhaseOutcome
from fitladder.records.selection import RungResult, Selection

__all__ = ["check_recomputed", "finalise", "select"]


def select(experiment: Experiment, history: Sequence[PhaseOutcome]) -> Selection:
    """The selection that this history ends in. Raises LadderRefused while the ladder is not at its end."""
    position = walk(experiment, history)
    if position.state not in ("selected", "exhausted"):
        raise LadderRefused(
            f"{experiment.experiment_id} has no selection"
            + (f": it is {experiment.state}" if experiment.state != "open" else ""),
            got=position.reason,
            need="an adequate rung, or every rung rejected",
        )
    ordered = sorted(history, key=lambda one: (one.key.thinking_budget_tokens, PHASES.index(one.key.phase)))
    return Selection(
        schema_version=1,
        experiment_id=experiment.experiment_id,
        passed=position.selected_budget_tokens is not None,
        selected=position.selected_budget_tokens,
        reason=position.reason,
        rungs=tuple(
            RungResult(
                thinking_budget_tokens=budget,
                status=status,
                phases=tuple(one for one in ordered if one.key.thinking_budget_tokens == budget),
            )
            for budget, status in position.rungs.items()
        ),
        history_sha256=canonical_sha256([one.model_dump(mode="json") for one in ordered]),
        selection_uses_decoded_or_scored_content=False,
        selection_uses_token_identity_for_periodicity=True,
        probes_excluded_from_promotion_scoring_and_pooling=True,
    )


def check_recomputed(recorded: Sequence[PhaseOutcome], recomputed: Sequence[PhaseOutcome]) -> None:
    """Every recorded outcome equals the one recomputed from its bundle, and the sets are the same.

    Raises LadderRefused naming the first phase and field that differ.
    """
    before, now = ({one.key: one for one in side} for side in (recorded, recomputed))
    if len(before) != len(recorded) or len(now) != len(recomputed):
        raise LadderRefused("a phase has two outcomes", need="one bundle a phase")
    for key in sorted(before.keys() ^ now.keys(), key=str):
        raise LadderRefused(
            f"{key} is " + ("recorded, but no bundle gives it" if key in before else "not recorded"),
            do="nothing is believed until record and bundles agree",
        )
    for key, old in before.items():
        for field in PhaseOutcome.model_fields:
            if getattr(old, field) != getattr(now[key], field):
                raise LadderRefused(
                    f"{rung_name(key.thinking_budget_tokens)} {key.phase}: {field} is not what was recorded",
                    got=getattr(now[key], field),
                    need=getattr(old, field),
                    do=f"run `fitladder verify {key.experiment_id}`, then make the audits again: `dvc repro`",
                )


def finalise(
    experiment: Experiment,
    recorded: Sequence[PhaseOutcome],
    recomputed: Sequence[PhaseOutcome],
    existing: Selection | None = None,
) -> Selection:
    """The selection after the whole history was recomputed; the same whenever it is called.

    Raises LadderRefused where record and recomputation differ, where the ladder is not at its end, or where
    an existing selection is another one: a decision is never replaced.
    """
    check_recomputed(recorded, recomputed)
    selection = select(experiment, recomputed)
    if existing is not None and existing != selection:
        raise LadderRefused(
            f"{experiment.experiment_id} was already decided",
            got=f"selected {selection.selected}, history {selection.history_sha256}",
            need=f"selected {existing.selected}, history {existing.history_sha256}",
        )
    return selection
