"""A KV-cache pool as the scheduler sees it: blocks that a sequence holds at each of its steps.

Sequences are counted in steps. One admitted with `tokens` in its prompt holds, u steps later, the blocks of
`tokens + u` positions (the position being computed needs its slot) and one block in each Mamba group.
"""

from dataclasses import dataclass

from fitladder.errors import GateRefused

__all__ = ["Pool"]


@dataclass(frozen=True)
class Pool:
    """Usable blocks (the null block excluded), tokens a block, and Mamba groups of the live engine."""

    usable_blocks: int
    block_size_tokens: int
    mamba_groups: int = 0

    def __post_init__(self) -> None:
        for name, value, least in (
            ("usable blocks", self.usable_blocks, 1),
            ("block size in tokens", self.block_size_tokens, 1),
            ("Mamba groups", self.mamba_groups, 0),
        ):
            if type(value) is not int or value < least:
                raise GateRefused(f"pool: {name}", got=repr(value), need=f"an integer of at least {least}")

    def held_blocks(self, tokens: int) -> int:
        """Blocks of a sequence whose slots reach `tokens` positions."""
        return -(-tokens // self.block_size_tokens) + self.mamba_groups

    def peak_blocks(self, prompt_tokens: int, max_new_tokens: int) -> int:
        """Blocks at its last step; the last sampled token is never computed and needs no slot."""
        return self.held_blocks(prompt_tokens + max_new_tokens - 1)

    def block_steps(self, tokens: int, steps: int) -> int:
        """Sum of `held_blocks(tokens + u)` over u in 0..steps-1: what a residency costs."""
        size = self.block_size_tokens

        def summed(limit: int) -> int:  # sum of ceil(x / size) for x in 1..limit
            whole, rest = divmod(limit, size)
            return size * whole * (whole + 1) // 2 + rest * (whole + 1)

        return summed(tokens + steps - 1) - summed(tokens - 1) + self.mamba_groups * steps

    def check_alone(self, prompt_tokens: int, max_new_tokens: int) -> int:
        """Peak blocks of a sequence that fits alone. Raises GateRefused otherwise, or on empty lengths."""
        if prompt_tokens < 1 or max_new_tokens < 1:
            raise GateRefused(
                "sequence",
                got=f"prompt {prompt_tokens}, output {max_new_tokens}",
                need="at least one token each",
            )
        peak = self.peak_blocks(prompt_tokens, max_new_tokens)
        if peak > self.usable_blocks:
            raise GateRefused(
                "one sequence alone exceeds the pool",
                got=f"{peak} blocks",
                need=f"at most {self.usable_blocks}",
            )
        return peak
