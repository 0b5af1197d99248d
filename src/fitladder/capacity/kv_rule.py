"""KV-cache fit of a phase on one pool, by the rule that its experiment registers.

Plan card, live gate and registration check call `decide_kv_fit`; they only render or refuse what it returns.
Pure: it sees numbers, whether a live engine reported them, a record holds them or a registration states them.
"""

from dataclasses import dataclass
from typing import Literal

from fitladder.capacity.kv_blocks import (
    NULL_BLOCKS,
    BlockFit,
    TokenFit,
    blocks_fit,
    blocks_per_sequence,
    largest_width_by_tokens,
    token_rule,
)

__all__ = ["KvFit", "KvPool", "KvRule", "KvVerdict", "decide_kv_fit"]

# token: the token figure decides, and its own whole blocks, without Mamba blocks, must be there.
# both: the token figure and the block-exact rule decide.
# block: the block-exact rule decides; the token figure is recorded.
KvRule = Literal["token", "both", "block"]
KvVerdict = Literal["fits", "short_of_tokens", "short_of_blocks", "unknown"]


@dataclass(frozen=True)
class KvPool:
    """A pool of KV blocks. `num_blocks` includes `null_blocks`; None where only tokens are recorded.

    `longest_sequence_blocks`: blocks of the longest sequence where its cache is laid out otherwise than as
    one full-attention group and `mamba_groups` blocks (sliding windows, chunks, states a block).
    """

    block_size_tokens: int
    mamba_groups: int
    kv_cache_size_tokens: int
    num_blocks: int | None
    null_blocks: int = NULL_BLOCKS
    longest_sequence_blocks: int | None = None

    @property
    def usable_blocks(self) -> int | None:
        """Blocks that requests can own."""
        return None if self.num_blocks is None else self.num_blocks - self.null_blocks


@dataclass(frozen=True)
class KvFit:
    """Demand, margins and verdict; a negative margin is what is missing.

    `blocks` counts a hybrid's Mamba blocks, `deciding_blocks` only where the rule does; both are None where
    the pool's blocks are not known. `widest`: most sequences that pass the rule, each at its longest; None
    where the rule needs blocks that are not known. `pool_share`: the demand over the pool, by what decides,
    None as `widest`.
    """

    rule: KvRule
    active_sequences: int
    resident_sequences: int
    tokens: TokenFit
    blocks: BlockFit | None
    deciding_blocks: BlockFit | None
    usable_blocks: int | None
    widest: int | None
    pool_share: float | None
    verdict: KvVerdict


def decide_kv_fit(
    pool: KvPool,
    *,
    rule: KvRule,
    spaced: bool,
    longest_sequence_tokens: int,
    active_sequences: int,
) -> KvFit:
    """Whether the sequences that run at once can stay resident, each at its longest.

    Args:
        pool: the blocks and the KV token figure of one engine.
        rule: which figures decide, see `KvRule`. Where blocks are not known, `token` and `both` are decided
            by tokens alone, and `block` is `unknown`.
        spaced: spaced admission; the pool must then hold one longest sequence, and admission, not width,
            keeps the others free of preemption.
        longest_sequence_tokens: prompt, budget, close sequence and answer.
        active_sequences: what runs at once, min(samples, max_num_seqs).

    Raises GateRefused where a figure is absent, boolean, fractional or too small.
    """
    resident = 1 if spaced else active_sequences
    longest, block, size = longest_sequence_tokens, pool.block_size_tokens, pool.kv_cache_size_tokens
    tokens = token_rule(longest, block, resident, size)
    by_tokens = rule != "block"
    fits_tokens = tokens.fits or not by_tokens
    widths = [largest_width_by_tokens(longest, block, size)] if by_tokens else []
    shares = [tokens.required_tokens / size] if by_tokens else []
    blocks = deciding = None
    if (usable := pool.usable_blocks) is not None:
        each = pool.longest_sequence_blocks
        if each is None:
            each = blocks_per_sequence(longest, block, pool.mamba_groups)
        counted = blocks_per_sequence(longest, block, 0) if rule == "token" else each
        blocks = blocks_fit(each, resident, usable)
        deciding = blocks_fit(counted, resident, usable)
        widths.append(usable // counted)
        shares.append(deciding.required_blocks / usable)
    verdict: KvVerdict = "fits"
    if not fits_tokens:
        verdict = "short_of_tokens"
    elif deciding is not None and not deciding.fits:
        verdict = "short_of_blocks"
    elif deciding is None and not by_tokens:
        verdict = "unknown"
    return KvFit(
        rule=rule,
        active_sequences=active_sequences,
        resident_sequences=resident,
        tokens=tokens,
        blocks=blocks,
        deciding_blocks=deciding,
        usable_blocks=usable,
        widest=min(widths, default=None),
        pool_share=max(shares, default=None),
        verdict=verdict,
    )
