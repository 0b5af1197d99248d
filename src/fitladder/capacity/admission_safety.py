"""Whether one more sequence may start now, every active one still reaching its budget: exact, with a proof.

Time is counted in engine steps from now. An active sequence with t tokens (prompt and sampled) that may
sample r more holds, u steps from now, at most f(u) = ceil((t + u) / block) + mamba_groups blocks for u < r,
and none from r on: it grows by a token a step, and an early end only makes f fall to 0 sooner. A sequence
with a prompt of p tokens started s steps from now holds f(u - s) with t = p. Let F be the sum of all f. The
blocks in use never exceed F.

 1. Between two neighbouring ends no f falls. So F is largest on the last step before an end, and F <= pool
    on those finitely many steps is F <= pool on all.
 2. A sequence is started only where F with it passes (1). With nothing active F = 0; by induction F <= pool
    after every start, and between starts F only loses terms.
 3. vLLM preempts only where a running sequence needs a block and none is free. Nothing ever needs more than
    its f, so while F <= pool there is one, in whatever order sequences end: no preemption, and nothing is
    recomputed.

A prompt that does not fit the token budget a step leaves takes k steps more. Who ends meanwhile decides how
many, so both extremes are charged: its blocks as if it took none of them, its last step as if it took all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fitladder.capacity.pool import Pool
from fitladder.errors import GateRefused

__all__ = ["ActiveSequence", "earliest_safe_step"]


@dataclass(frozen=True, slots=True)
class ActiveSequence:
    """One sequence in the engine before a step.

    tokens: prompt and sampled so far. remaining_tokens: most that it may still sample, at least 1 while
    active. prefill_tokens: prompt tokens not computed yet, 0 once it decodes.
    """

    tokens: int
    remaining_tokens: int
    prefill_tokens: int = 0


def earliest_safe_step(
    pool: Pool,
    active: Sequence[ActiveSequence],
    prompt_tokens: int,
    max_new_tokens: int,
    prefill_budget_tokens: int,
) -> int:
    """Steps from now until a new sequence may start; 0 means now, and every later step is safe too.

    Where prompts fit the step budget it is exact: one step sooner is unsafe if all run to their budgets.
    `active` in the engine's order; `prefill_budget_tokens` is what a step surely leaves for prefill. All
    sequences share one budget, so the new one ends last and only the ends of active ones need a look.
    Raises GateRefused where an active one may sample more than max_new_tokens, or where the sequence alone
    exceeds the pool.
    """
    peak = pool.check_alone(prompt_tokens, max_new_tokens)
    if not active:
        return 0
    longest = max(one.remaining_tokens for one in active)
    if longest > max_new_tokens or min(one.remaining_tokens for one in active) < 1:
        raise GateRefused(
            "active sequences of another budget", got=f"{longest} tokens left", need=f"1 to {max_new_tokens}"
        )
    size, groups = pool.block_size_tokens, pool.mamba_groups
    rows = [(one.tokens, one.remaining_tokens, one.prefill_tokens) for one in active]
    tokens, steps, prefill = np.array(rows, dtype=np.int64).T
    late = np.where(prefill > 0, -(-np.cumsum(prefill) // prefill_budget_tokens) - 1, 0)
    last = steps + late - 1  # the last step on which each is charged
    reach = tokens + np.minimum(last[:, None], steps - 1)  # [end, sequence]
    held = np.where(last >= last[:, None], -(-reach // size) + groups, 0)
    slack = pool.usable_blocks - held.sum(axis=1)
    # On step `last` a sequence started s steps from now holds few enough blocks if prompt + last - s tokens
    # fit into them, or is not there yet; with room for its peak every s will do.
    wait = np.minimum(prompt_tokens + last - size * (slack - groups), last + 1)
    return max(0, int(np.where(slack >= peak, 0, wait).max()))
