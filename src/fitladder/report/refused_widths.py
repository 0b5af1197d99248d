"""Width that the live KV pool refuses, shown on a page so that readers see a refusal."""

from fitladder.capacity.kv_blocks import rounded_tokens
from fitladder.errors import GateRefused
from fitladder.records.experiment import Experiment
from fitladder.report.view import PhaseView, RefusedWidth

__all__ = ["refused_widths"]

OVERCOMMIT = 2


def refused_widths(experiment: Experiment, phases: tuple[PhaseView, ...]) -> tuple[RefusedWidth, ...]:
    """Twice the registered width at the last rung, where the live pool cannot hold it; else empty.

    Args:
        experiment: the registered experiment.
        phases: its phases; the pool is that of the newest one with an engine.

    Counts KV tokens by the token rule.
    """
    live = next((phase.capacity for phase in reversed(phases) if phase.capacity), None)
    if live is None:
        return ()
    rung = experiment.rungs[-1]
    width = OVERCOMMIT * rung.max_num_seqs
    try:
        each = rounded_tokens(experiment.longest_sequence_tokens(rung), live.block_size_tokens)
    except GateRefused:
        return ()
    if width * each <= live.kv_cache_size_tokens:
        return ()
    return (
        RefusedWidth(
            label=f"plan for {rung.thinking_budget_tokens:,}, {width} wide",
            max_num_seqs=width,
            required_tokens=width * each,
            kv_cache_size_tokens=live.kv_cache_size_tokens,
            reason=f"{width} sequences of {each:,} tokens need {width * each:,} KV tokens; the live pool has "
            f"{live.kv_cache_size_tokens:,}. The registered width is {rung.max_num_seqs}.",
        ),
    )
