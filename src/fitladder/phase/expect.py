"""What KV pool and what speed is to be expected, and from which record? Planned with, never decided by.

From a live engine of this experiment where one was recorded, else from the registered figures of the
experiment that it follows, else from what is registered, else unknown: the live gates tell.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fitladder.phase.house import House
from fitladder.phase.standing import Standing
from fitladder.protocol.capacity import (
    block_rule,
    kv_tokens_for_blocks,
    largest_width,
    largest_width_by_tokens,
    rounded_tokens,
    token_rule,
    usable_pool_blocks,
)
from fitladder.protocol.experiment import Experiment
from fitladder.protocol.settings import Rung
from fitladder.protocol.sound import CPU_BLOCK_TOKENS
from fitladder.report.recorded import History, load_history

__all__ = ["Geometry", "expected_geometry", "expected_speed", "fit_line"]


@dataclass(frozen=True)
class Geometry:
    """The KV pool that is expected, and where the figures are from. `num_blocks` may be unknown."""

    block_size_tokens: int
    num_blocks: int | None
    mamba_groups: int
    kv_cache_size_tokens: int
    source: str


def _histories(house: House, standing: Standing) -> Iterator[History]:
    """Registered figures of the predecessors that ran the same model at the same length, nearest first."""
    own = standing.experiment
    name, seen = own.predecessor, {own.experiment_id}
    while name is not None and name not in seen and name in standing.registry.experiments:
        seen.add(name)
        other = standing.registry.experiments[name]
        alike = (other.model, other.engine.max_model_len_tokens) == (
            own.model,
            own.engine.max_model_len_tokens,
        )
        if alike and (history := load_history(house.data, name)) is not None:
            yield history
        name = other.predecessor


def expected_geometry(house: House, standing: Standing) -> Geometry | None:
    """The best figures there are, None where nothing is known before the engine is built."""
    if standing.begun:
        newest = standing.begun[-1]
        facts = newest.engine
        if facts.block_size_tokens is not None:
            return Geometry(
                facts.block_size_tokens,
                facts.num_blocks,
                facts.mamba_groups,
                facts.kv_cache_size_tokens,
                f"{facts.num_blocks} blocks of {facts.block_size_tokens} tokens, as {newest.key.phase}@"
                f"{newest.key.thinking_budget_tokens} found it",
            )
    for history in _histories(house, standing):
        capacity = history.phases[-1].capacity
        return Geometry(
            capacity.block_size_tokens,
            None,
            0,
            capacity.kv_cache_size_tokens,
            f"{capacity.kv_cache_size_tokens:,} tokens in blocks of {capacity.block_size_tokens}, "
            f"as {history.experiment_id} recorded it",
        )
    return _registered(standing.experiment)


def _registered(experiment: Experiment) -> Geometry | None:
    """A CPU pool is what its registration says; a GPU's is only known to its engine."""
    engine = experiment.engine
    if engine.backend != "vllm-cpu" or engine.num_gpu_blocks_override is None:
        return None
    block = int(engine.args.get("block_size", CPU_BLOCK_TOKENS))
    blocks = engine.num_gpu_blocks_override
    each = rounded_tokens(engine.max_model_len_tokens, block) // block
    tokens = kv_tokens_for_blocks(blocks, each, engine.max_model_len_tokens)
    return Geometry(block, blocks, 0, tokens, f"{blocks} blocks of {block} tokens, as registered")


def expected_speed(house: House, standing: Standing, budget_tokens: int) -> float | None:
    """Sampled tokens a second, load excluded: of the newest phase here, else of a predecessor's same rung."""
    for bundle in reversed(standing.bundles):
        totals = bundle.receipt.totals
        spent_us = totals.stage1_generation_us + totals.stage2_generation_us
        if spent_us:
            return totals.sampled_tokens * 1e6 / spent_us
    for history in _histories(house, standing):
        for phase in reversed(history.phases):
            if phase.generation is not None and phase.thinking_budget_tokens == budget_tokens:
                return phase.generation.sampled_tokens / phase.generation.generation_s
    return None


def fit_line(experiment: Experiment, rung: Rung, geometry: Geometry, sequences: int) -> str:
    """Whether so many sequences fit, by the registered rule, and how many do."""
    longest, pool = experiment.longest_total_tokens(rung), geometry.kv_cache_size_tokens
    block = geometry.block_size_tokens
    tokens = token_rule(longest, block, sequences, pool)
    parts = [f"{tokens.required_tokens:,} of {pool:,} tokens (margin {tokens.margin_tokens:,})"]
    fits, share = tokens.fits, tokens.required_tokens / pool
    most = largest_width_by_tokens(longest, block, pool)
    if geometry.num_blocks is not None:
        usable = usable_pool_blocks(geometry.num_blocks)
        blocks = block_rule(longest, block, geometry.mamba_groups, sequences, usable)
        parts.append(f"{blocks.required_blocks:,} of {usable:,} blocks (margin {blocks.margin_blocks:,})")
        if experiment.kv_rule == "both":
            fits, share = fits and blocks.fits, max(share, blocks.required_blocks / usable)
            most = largest_width(longest, block, geometry.mamba_groups, usable, pool)
    elif experiment.kv_rule == "both":
        parts.append("blocks are told by the live gate")
    if fits:
        return f"{sequences} sequences fit: {', '.join(parts)}; {most} would fit"
    return f"{sequences} sequences need {share:.1f}x the pool; {most} fit"
