"""The integers of KV-cache fit: whether so many sequences can stay resident, each at its longest.

Two rules, one registered (tokens) and one stricter (blocks). It sees only numbers: neither an engine nor a
protocol, so that gates and planner can never disagree about a fit.
"""

import math
from dataclasses import dataclass

from fitladder.errors import GateRefused

__all__ = [
    "NULL_BLOCKS",
    "BlockFit",
    "TokenFit",
    "block_rule",
    "blocks_fit",
    "blocks_for_kv_tokens",
    "blocks_per_sequence",
    "check_concurrency",
    "kv_tokens_for_blocks",
    "largest_width_by_blocks",
    "largest_width_by_tokens",
    "longest_sequence_tokens",
    "rounded_tokens",
    "token_rule",
    "usable_pool_blocks",
]

NULL_BLOCKS = 1  # vLLM's block pool keeps block 0 as the placeholder that no request may own
PRINTED_CONCURRENCY_HALF_STEP = 0.005  # vLLM logs the concurrency with two decimals


@dataclass(frozen=True)
class TokenFit:
    """Outcome of `token_rule`; a negative margin is what is missing."""

    rounded_tokens_per_sequence: int
    required_tokens: int
    margin_tokens: int
    fits: bool


@dataclass(frozen=True)
class BlockFit:
    """Outcome of `block_rule`; a negative margin is what is missing."""

    blocks_per_sequence: int
    required_blocks: int
    margin_blocks: int
    fits: bool


def _whole(name: str, value: object, at_least: int) -> int:
    """An absent, fractional, boolean or too small figure says no: a fit cannot be shown with it."""
    if type(value) is not int or value < at_least:
        raise GateRefused(
            f"no fit can be shown: {name}", got=repr(value), need=f"an integer of at least {at_least}"
        )
    return value


def longest_sequence_tokens(
    longest_prompt_tokens: int, thinking_budget_tokens: int, close_tokens: int, answer_max_tokens: int
) -> int:
    """Tokens of the longest sequence: prompt + thinking budget + close sequence + answer limit.

    The only place that adds these four. Raises GateRefused where one is absent, boolean, fractional, below 0,
    or a prompt below 1.
    """
    return (
        _whole("longest prompt", longest_prompt_tokens, 1)
        + _whole("thinking budget", thinking_budget_tokens, 0)
        + _whole("close sequence", close_tokens, 0)
        + _whole("answer limit", answer_max_tokens, 0)
    )


def rounded_tokens(max_total_tokens: int, block_size_tokens: int) -> int:
    """`ceil(max_total / block) * block`: what whole blocks hold of one sequence. Raises GateRefused."""
    block = _whole("block size in tokens", block_size_tokens, 1)
    return -(-_whole("longest sequence in tokens", max_total_tokens, 1) // block) * block


def token_rule(
    max_total_tokens: int, block_size_tokens: int, active_sequences: int, kv_cache_size_tokens: int
) -> TokenFit:
    """The registered rule: `active * ceil(max_total / block) * block <= kv_cache_size_tokens`.

    Raises GateRefused where a figure is absent, boolean, fractional or below 1.
    """
    rounded = rounded_tokens(max_total_tokens, block_size_tokens)
    required = _whole("active sequences", active_sequences, 1) * rounded
    margin = _whole("KV cache size in tokens", kv_cache_size_tokens, 1) - required
    return TokenFit(rounded, required, margin, margin >= 0)


def blocks_per_sequence(max_total_tokens: int, block_size_tokens: int, mamba_groups: int) -> int:
    """Attention blocks for the longest sequence, and one block in each Mamba group. Raises GateRefused."""
    attention = rounded_tokens(max_total_tokens, block_size_tokens) // block_size_tokens
    return attention + _whole("Mamba groups", mamba_groups, 0)


def block_rule(
    max_total_tokens: int,
    block_size_tokens: int,
    mamba_groups: int,
    active_sequences: int,
    usable_blocks: int,
) -> BlockFit:
    """The block-exact rule: `active * (ceil(max_total / block) + mamba_groups) <= usable blocks`.

    Stricter than the token rule: a hybrid's request holds a block in each Mamba group too, and the KV
    token figure is a concurrency at max_model_len. Raises GateRefused as `token_rule` does.
    """
    each = blocks_per_sequence(max_total_tokens, block_size_tokens, mamba_groups)
    return blocks_fit(each, active_sequences, usable_blocks)


def blocks_fit(blocks_per_sequence: int, active_sequences: int, usable_blocks: int) -> BlockFit:
    """The block-exact rule for sequences of so many blocks each. Raises GateRefused as `block_rule` does."""
    each = _whole("blocks a sequence", blocks_per_sequence, 1)
    required = _whole("active sequences", active_sequences, 1) * each
    margin = _whole("usable blocks", usable_blocks, 1) - required
    return BlockFit(each, required, margin, margin >= 0)


def usable_pool_blocks(pool_blocks: int) -> int:
    """Blocks that requests can own: the pool less the null block. Raises GateRefused below 2."""
    return _whole("pool blocks", pool_blocks, NULL_BLOCKS + 1) - NULL_BLOCKS


def largest_width_by_tokens(max_total_tokens: int, block_size_tokens: int, kv_cache_size_tokens: int) -> int:
    """Most sequences that pass `token_rule`; 0 when not even one does."""
    rounded = rounded_tokens(max_total_tokens, block_size_tokens)
    return _whole("KV cache size in tokens", kv_cache_size_tokens, 1) // rounded


def largest_width_by_blocks(
    max_total_tokens: int, block_size_tokens: int, mamba_groups: int, usable_blocks: int
) -> int:
    """Most sequences that pass `block_rule`; 0 when not even one does."""
    each = blocks_per_sequence(max_total_tokens, block_size_tokens, mamba_groups)
    return _whole("usable blocks", usable_blocks, 1) // each


def kv_tokens_for_blocks(pool_blocks: int, blocks_per_longest_request: int, max_model_len_tokens: int) -> int:
    """vLLM's `kv_cache_size_tokens`: `int(pool / blocks_per_longest_request * max_model_len)`.

    The same two IEEE operations in the same order as the engine's, so that equality is exact. The longest
    request is one of max_model_len tokens, its Mamba blocks included; the null block is in the pool.
    """
    return int(
        _whole("pool blocks", pool_blocks, 1)
        / _whole("blocks of a max_model_len request", blocks_per_longest_request, 1)
        * _whole("max_model_len", max_model_len_tokens, 1)
    )


def blocks_for_kv_tokens(
    kv_cache_size_tokens: int, blocks_per_longest_request: int, max_model_len_tokens: int
) -> int:
    """The pool whose `kv_tokens_for_blocks` is this figure. Raises GateRefused where no pool gives it."""
    tokens = _whole("KV cache size in tokens", kv_cache_size_tokens, 1)
    each = _whole("blocks of a max_model_len request", blocks_per_longest_request, 1)
    near = tokens * each // _whole("max_model_len", max_model_len_tokens, 1)
    for pool_blocks in (near, near + 1):
        if pool_blocks and kv_tokens_for_blocks(pool_blocks, each, max_model_len_tokens) == tokens:
            return pool_blocks
    raise GateRefused(
        "KV cache size matches no whole number of blocks",
        got=f"{tokens} tokens at {each} blocks a {max_model_len_tokens}-token request",
        need=f"one of {[kv_tokens_for_blocks(n, each, max_model_len_tokens) for n in (near, near + 1) if n]}",
    )


def check_concurrency(
    kv_cache_size_tokens: int, max_concurrency: float, max_model_len_tokens: int, *, printed: bool = False
) -> None:
    """The engine's two capacity figures must be one: `int(concurrency * max_model_len) == tokens`.

    `printed`: the concurrency was read from a log line and is rounded to two decimals. Raises GateRefused
    with both figures.
    """
    tokens = _whole("KV cache size in tokens", kv_cache_size_tokens, 1)
    length = _whole("max_model_len", max_model_len_tokens, 1)
    if isinstance(max_concurrency, bool) or not (math.isfinite(max_concurrency) and max_concurrency > 0):
        raise GateRefused(
            "no fit can be shown: concurrency", got=repr(max_concurrency), need="a positive number"
        )
    slack = PRINTED_CONCURRENCY_HALF_STEP * length + 1 if printed else 0
    implied = int(max_concurrency * length)
    if abs(implied - tokens) > slack:
        raise GateRefused(
            "the engine's capacity figures are inconsistent",
            got=f"{tokens} KV tokens beside {max_concurrency}x at {length} tokens",
            need=f"{implied} KV tokens at that concurrency",
        )
