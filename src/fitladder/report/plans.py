"""Which width would not have fitted? A rehearsal shows one, so that a newcomer sees the fit refused."""

from fitladder.capacity.kv_blocks import rounded_tokens
from fitladder.errors import GateRefused
from fitladder.records.experiment import Experiment
from fitladder.report.view import PhaseView, Plan

__all__ = ["refused_plans"]

OVERCOMMIT = 2


def refused_plans(experiment: Experiment, phases: tuple[PhaseView, ...]) -> tuple[Plan, ...]:
    """Twice the registered width at the last rung, against the pool that a live engine reported."""
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
        Plan(
            label=f"plan for {rung.thinking_budget_tokens:,}, {width} wide",
            max_num_seqs=width,
            required_tokens=width * each,
            kv_cache_size_tokens=live.kv_cache_size_tokens,
            reason=f"{width} sequences of {each:,} tokens need {width * each:,} KV tokens; the live pool has "
            f"{live.kv_cache_size_tokens:,}. The registered width is {rung.max_num_seqs}.",
        ),
    )
