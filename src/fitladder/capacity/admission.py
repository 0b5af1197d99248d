"""Spaced admission: the step at which the next sequence may start, so that nothing is ever preempted.

Pure: it knows token counts and a pool, no engine. The engine's loop asks `next_step` after every start and
every end, and hands each waiting sequence over at the step named.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal, Protocol

from fitladder.capacity.admission_safety import ActiveSequence, earliest_safe_step
from fitladder.capacity.pool import Pool
from fitladder.capacity.spaced_starts import cheapest_starts
from fitladder.errors import GateRefused

__all__ = [
    "GROUPED_START_COST_STEPS",
    "AdmissionPolicy",
    "SpacedAdmission",
    "Spacing",
    "spaced_admission",
]

Spacing = Literal["spaced", "spaced_groups"]

# What `spaced_groups` assumes of a step with a prefill, in decode steps. Seven cells of the H200 studies come
# out within 6 % by 6.3 ms a step, 55 ms more where something prefills, and 21 us a prefilled token.
GROUPED_START_COST_STEPS = 9

# Holding back pays while nearly all sequences use their budget. Once one twelfth of what was reserved came
# back unused, ends are spread by themselves and the plan's pauses cost more than they gain
# (tests/bench/test_admission.py).
UNUSED_SHARE_DENOMINATOR = 12


class AdmissionPolicy(Protocol):
    """Driven by the engine's step loop; one instance a run, asked in order of steps."""

    def next_step(
        self, now_step: int, active: Sequence[ActiveSequence], waiting_prompt_tokens: Sequence[int]
    ) -> int | None:
        """Step (>= now_step) before which the first waiting sequence may be started; None: only after an end.

        The answer holds until a sequence starts or ends. `now_step` itself means: start it now, and ask
        again. `active` is in the engine's order, `waiting_prompt_tokens` first come first.
        """
        ...

    def record_end(self, ended: ActiveSequence) -> None:
        """A sequence left; its `remaining_tokens` is what it did not use of its budget, 0 for nothing."""
        ...


@dataclass
class SpacedAdmission:
    """Starts follow `cheapest_starts`; each is proved safe at its own step, whatever the plan says.

    prompt_tokens: all sequences of the run, first come first. max_new_tokens: their common budget.
    max_num_batched_tokens: the engine's token budget a step. start_cost_steps: what a step with a prefill
    costs beyond its tokens, in decode steps; 0 starts each sequence by itself. Raises GateRefused where a
    sequence alone exceeds the pool, or where the decodes may leave no token to prefill with.
    """

    pool: Pool
    prompt_tokens: Sequence[int]
    max_new_tokens: int
    max_num_seqs: int
    max_num_batched_tokens: int
    start_cost_steps: int = 0
    starts: tuple[int, ...] = field(init=False)
    unused_block_steps: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.prefill_budget_tokens = self.max_num_batched_tokens - self.max_num_seqs
        if self.prefill_budget_tokens < 1:
            raise GateRefused(
                "no room to prefill beside the decodes",
                got=f"{self.max_num_batched_tokens} tokens a step for {self.max_num_seqs} sequences",
                need="max_num_batched_tokens above max_num_seqs",
            )
        self.starts = cheapest_starts(
            self.prompt_tokens, self.max_new_tokens, self.pool, self.max_num_seqs, self.start_cost_steps
        )
        costs = (self.pool.block_steps(prompt, self.max_new_tokens) for prompt in self.prompt_tokens)
        self._reserved_block_steps = tuple(accumulate(costs, initial=0))

    def next_step(
        self, now_step: int, active: Sequence[ActiveSequence], waiting_prompt_tokens: Sequence[int]
    ) -> int | None:
        """The later of planned start and earliest safe step; only the latter once many end early."""
        if not waiting_prompt_tokens or len(active) >= self.max_num_seqs:
            return None
        index = len(self.starts) - len(waiting_prompt_tokens)
        if index < 0 or waiting_prompt_tokens[0] != self.prompt_tokens[index]:
            raise GateRefused(
                "waiting sequences are not the planned ones",
                got=f"{len(waiting_prompt_tokens)} waiting, the first of {waiting_prompt_tokens[0]} tokens",
                need="the planned prompts in their order",
            )
        safe = now_step + earliest_safe_step(
            self.pool, active, waiting_prompt_tokens[0], self.max_new_tokens, self.prefill_budget_tokens
        )
        reserved = self._reserved_block_steps[index]
        many_end_early = self.unused_block_steps * UNUSED_SHARE_DENOMINATOR > reserved
        return safe if many_end_early or not active else max(safe, self.starts[index])

    def record_end(self, ended: ActiveSequence) -> None:
        """Counts the block-steps that the sequence leaves unused."""
        if ended.remaining_tokens:
            self.unused_block_steps += self.pool.block_steps(ended.tokens, ended.remaining_tokens)


def spaced_admission(
    spacing: Spacing,
    pool: Pool,
    prompt_tokens: Sequence[int],
    *,
    max_new_tokens: int,
    max_num_seqs: int,
    max_num_batched_tokens: int,
) -> SpacedAdmission:
    """The policy of an admission word. `spaced`: each sequence as soon as the plan has room, least steps.

    `spaced_groups`: sequences start together where that is cheaper, which pays in runs of few thousand steps.
    """
    return SpacedAdmission(
        pool=pool,
        prompt_tokens=prompt_tokens,
        max_new_tokens=max_new_tokens,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        start_cost_steps=GROUPED_START_COST_STEPS if spacing == "spaced_groups" else 0,
    )
