"""Kinds of KV cache that a layer can have, and how many blocks each needs.

Follows the specs of vLLM (`vllm.v1.kv_cache_interface`): a kind states tokens a block, bytes a page (one
layer's share of one block), and how many blocks a request of a given length may hold at its peak.
"""

from dataclasses import dataclass
from typing import Literal

__all__ = ["CacheGroup", "CacheLayout", "CacheSpec", "SpecKind"]

SpecKind = Literal["full", "latent", "sparse_index", "sliding", "chunked", "state"]


def _blocks(tokens: int, block_tokens: int) -> int:
    return -(-tokens // block_tokens)


@dataclass(frozen=True)
class CacheSpec:
    """Cache of one layer.

    kind: `full` attention, `latent` (MLA, one vector a token for all heads), `sparse_index` (keys that
    choose what latent attention reads), `sliding` window, `chunked` local attention, or recurrent `state`
    (Mamba 1 and 2, gated delta, short convolution).
    reach_tokens: tokens of a window or chunk; 0 for the others.
    state_blocks: blocks that a request holds for its states, whatever its length; 0 where vLLM keeps one for
    every block of tokens, and for attention.
    """

    kind: SpecKind
    block_tokens: int
    page_bytes: int
    reach_tokens: int = 0
    state_blocks: int = 0

    def blocks(self, length_tokens: int, in_flight_tokens: int) -> int:
        """Most blocks of a request of so many tokens; `in_flight_tokens` are scheduled but not yet freed."""
        if self.kind == "sliding":  # one more: the window may begin inside a block
            held = min(self.reach_tokens - 1 + in_flight_tokens, length_tokens)
            return _blocks(held, self.block_tokens) + 1
        if self.kind == "chunked":
            return _blocks(min(self.reach_tokens + in_flight_tokens, length_tokens), self.block_tokens)
        return self.state_blocks or _blocks(length_tokens, self.block_tokens)


@dataclass(frozen=True)
class CacheGroup:
    """Layers that share one block table: one spec stands for all; their pages add up in one block."""

    spec: CacheSpec
    layers: int
    bytes_per_block: int


@dataclass(frozen=True)
class CacheLayout:
    """Groups of a model's cache as one engine lays it out. `in_flight_tokens` bounds windows and chunks."""

    groups: tuple[CacheGroup, ...]
    in_flight_tokens: int

    @property
    def block_bytes(self) -> int:
        """Bytes that one block takes from the pool: those of the widest group."""
        return max(group.bytes_per_block for group in self.groups)

    @property
    def block_size_tokens(self) -> int:
        """Tokens a block: the smallest of the attention groups; of the states where there is no attention."""
        attention = [group.spec.block_tokens for group in self.groups if group.spec.kind != "state"]
        return min(attention or [group.spec.block_tokens for group in self.groups])

    @property
    def state_blocks(self) -> int:
        """Blocks that a request holds for its states at any length."""
        return sum(group.spec.state_blocks for group in self.groups)

    @property
    def grows_by_whole_sequence(self) -> bool:
        """Whether a request holds one full group's blocks and a fixed number of states, nothing else."""
        growing = [group.spec for group in self.groups if not group.spec.state_blocks]
        return len(growing) == 1 and growing[0].kind in ("full", "latent")

    def blocks_by_group(self, length_tokens: int) -> tuple[int, ...]:
        """Most blocks of a request of so many tokens, group by group."""
        return tuple(group.spec.blocks(length_tokens, self.in_flight_tokens) for group in self.groups)

    def blocks_for(self, length_tokens: int) -> int:
        """Most blocks of a request of so many tokens."""
        return sum(self.blocks_by_group(length_tokens))
