"""How many sequences can run at once at a length, and the graphs that cover that width.

Puts layout, pool and the KV rule together. Refuses figures that contradict each other. Pure.
"""

from dataclasses import dataclass

from fitladder.capacity.capture_coverage import covering_capture_list, uncovered_widths
from fitladder.capacity.default_capture import implicit_capture_list
from fitladder.capacity.kv_blocks import (
    BlockFit,
    TokenFit,
    blocks_fit,
    blocks_for_kv_tokens,
    blocks_per_sequence,
    kv_tokens_for_blocks,
    largest_width_by_tokens,
    token_rule,
    usable_pool_blocks,
)
from fitladder.capacity.kv_rule import KvFit, KvPool, KvRule, decide_kv_fit
from fitladder.capacity.kv_specs import CacheLayout
from fitladder.errors import GateRefused

__all__ = ["Cache", "CapacityPlan", "plan_capacity", "settle_pool_blocks"]

MOST_POOL_BLOCKS = 10_000_000  # some ten times what any GPU holds; widths are listed one by one


@dataclass(frozen=True)
class Cache:
    """An engine's cache, predicted or live; `pool_blocks` includes the null block.

    `mamba_groups` counts the blocks that a request holds for its states. `layout` is stated where a request
    holds something else than the blocks of its whole sequence and those.
    """

    block_size_tokens: int
    mamba_groups: int
    pool_blocks: int
    max_model_len_tokens: int
    layout: CacheLayout | None = None

    def blocks_for(self, length_tokens: int) -> int:
        """Most blocks of one request of so many tokens."""
        if self.layout is not None:
            return self.layout.blocks_for(length_tokens)
        return blocks_per_sequence(length_tokens, self.block_size_tokens, self.mamba_groups)

    def decide_fit(self, longest_sequence_tokens: int, active_sequences: int, rule: KvRule) -> KvFit:
        """Whether so many sequences fit at once, by the KV rule that the gate applies too."""
        each = None if self.layout is None else self.layout.blocks_for(longest_sequence_tokens)
        pool = KvPool(
            block_size_tokens=self.block_size_tokens,
            mamba_groups=self.mamba_groups,
            kv_cache_size_tokens=self.kv_cache_size_tokens,
            num_blocks=self.pool_blocks,
            longest_sequence_blocks=each,
        )
        return decide_kv_fit(
            pool,
            rule=rule,
            spaced=False,
            longest_sequence_tokens=longest_sequence_tokens,
            active_sequences=active_sequences,
        )

    @property
    def blocks_per_longest_request(self) -> int:
        """Blocks of one request of max_model_len tokens."""
        return self.blocks_for(self.max_model_len_tokens)

    @property
    def kv_cache_size_tokens(self) -> int:
        """The figure vLLM reports: its concurrency at max_model_len times max_model_len."""
        return kv_tokens_for_blocks(
            self.pool_blocks, self.blocks_per_longest_request, self.max_model_len_tokens
        )


@dataclass(frozen=True)
class CapacityPlan:
    """The widest safe batch by the KV rule, both fits at that width, and its graphs."""

    kv_rule: KvRule
    max_total_tokens: int
    max_num_batched_tokens: int
    blocks_per_sequence: int
    kv_cache_size_tokens: int
    max_num_seqs: int
    max_num_seqs_by_tokens: int
    max_num_seqs_by_blocks: int
    tokens: TokenFit
    blocks: BlockFit
    capture_sizes: tuple[int, ...]
    implicit_capture_sizes: tuple[int, ...]
    uncovered_widths_if_implicit: tuple[int, ...]


def settle_pool_blocks(
    *,
    block_size_tokens: int,
    mamba_groups: int,
    max_model_len_tokens: int,
    blocks: int | None,
    kv_tokens: int | None,
    layout: CacheLayout | None = None,
) -> int | None:
    """The pool that live figures state, None where neither is given. Raises GateRefused if they disagree.

    layout: as in `Cache`, which the other figures are too.
    """
    longest = Cache(
        block_size_tokens, mamba_groups, 0, max_model_len_tokens, layout
    ).blocks_per_longest_request
    if kv_tokens is None:
        return blocks
    found = blocks_for_kv_tokens(kv_tokens, longest, max_model_len_tokens)
    if blocks is not None and blocks != found:
        raise GateRefused(
            "live figures contradict each other",
            got=f"{blocks} blocks beside {kv_tokens} KV tokens",
            need=f"{found} blocks with so many tokens",
        )
    return found


def plan_capacity(
    cache: Cache, max_total_tokens: int, *, max_num_batched_tokens: int, rule: KvRule = "both"
) -> CapacityPlan:
    """The largest max_num_seqs that passes the KV rule, with margins and captures.

    Raises GateRefused where the sequence exceeds max_model_len, or where not even one fits.
    """
    if max_total_tokens > cache.max_model_len_tokens:
        raise GateRefused(
            "the longest sequence exceeds max_model_len",
            got=f"{max_total_tokens} tokens, {max_total_tokens - cache.max_model_len_tokens} over",
            need=f"at most {cache.max_model_len_tokens}",
            do="raise --max-model-len or lower the budget",
        )
    if cache.pool_blocks > MOST_POOL_BLOCKS:
        raise GateRefused("pool blocks", got=cache.pool_blocks, need=f"at most {MOST_POOL_BLOCKS}")
    usable = usable_pool_blocks(cache.pool_blocks)
    size, kv_tokens = cache.block_size_tokens, cache.kv_cache_size_tokens
    each = cache.blocks_for(max_total_tokens)
    fitting = cache.decide_fit(max_total_tokens, 1, rule).widest or 0
    width = min(fitting, max_num_batched_tokens)  # vLLM refuses more than a step may schedule
    if not width:
        raise GateRefused(
            "not one sequence fits", got=f"{each} blocks a sequence", need=f"at most {usable} usable blocks"
        )
    implicit = implicit_capture_list(width, max_num_batched_tokens, max_capture_size=width)
    return CapacityPlan(
        kv_rule=rule,
        max_total_tokens=max_total_tokens,
        max_num_batched_tokens=max_num_batched_tokens,
        blocks_per_sequence=each,
        kv_cache_size_tokens=kv_tokens,
        max_num_seqs=width,
        max_num_seqs_by_tokens=largest_width_by_tokens(max_total_tokens, size, kv_tokens),
        max_num_seqs_by_blocks=usable // each,
        tokens=token_rule(max_total_tokens, size, width, kv_tokens),
        blocks=blocks_fit(each, width, usable),
        capture_sizes=covering_capture_list(width),
        implicit_capture_sizes=implicit,
        uncovered_widths_if_implicit=uncovered_widths(implicit, width),
    )
