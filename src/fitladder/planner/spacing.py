"""When should sequences start, so that a pool is full all the time? The plan that spaced admission follows.

Sequences grow until they end, so packing them forwards needs foresight: those started together peak
together. Seen backwards from the end they only shrink, and the greedy packing needs none: whenever there is
room for a peak, the next sequence ends there. Turned round, that is a schedule whose pool never lacks more
than one peak of blocks, but for the ramp at the start. It knows lengths and a pool; safety is not its
business.
"""

import heapq
from collections.abc import Sequence

from fitladder.errors import GateRefused
from fitladder.planner.pool import Pool

__all__ = ["lower_bound_steps", "peak_width", "plan_starts", "plan_steps"]


MOST_CHANGES = 512  # a sequence of more blocks gives them up in groups, a little late: a plan stays quick


def plan_starts(
    prompt_tokens: Sequence[int], max_new_tokens: int, pool: Pool, max_num_seqs: int
) -> tuple[int, ...]:
    """Start step of each sequence, first come first, if all run to max_new_tokens; the first is 0.

    Never more than max_num_seqs at once and never more blocks than the pool's. Under a second for hundreds.
    Raises GateRefused where one sequence alone exceeds the pool.
    """
    if max_num_seqs < 1:
        raise GateRefused("max_num_seqs", got=max_num_seqs, need="at least 1")
    size = pool.block_size_tokens
    changes: list[tuple[int, int, int]] = []  # step back, blocks freed, sequences gone
    ends: list[int] = []  # steps between each sequence's end and the end of all, last sequence first
    free, width, back = pool.usable_blocks, 0, 0
    for prompt in reversed(prompt_tokens):
        peak = pool.check_alone(prompt, max_new_tokens)
        while free < peak or width == max_num_seqs:
            back, blocks, gone = heapq.heappop(changes)
            free, width = free + blocks, width - gone
            while changes and changes[0][0] == back:
                _, blocks, gone = heapq.heappop(changes)
                free, width = free + blocks, width - gone
        first, last = -(-prompt // size), -(-(prompt + max_new_tokens - 1) // size)
        length, group = back + prompt + max_new_tokens - 1, -(-(last - first) // MOST_CHANGES) or 1
        for reached in range(last - group, first - 1, -group):  # backwards, blocks go when these are enough
            heapq.heappush(changes, (length - reached * size, group, 0))
        kept = last - (last - first) // group * group + pool.mamba_groups
        heapq.heappush(changes, (back + max_new_tokens, kept, 1))
        free, width = free - peak, width + 1
        ends.append(back)
    longest = max(ends, default=0)
    return tuple(longest - end for end in reversed(ends))


def plan_steps(starts: Sequence[int], max_new_tokens: int) -> int:
    """Steps of a plan in which every sequence runs to max_new_tokens."""
    return max(starts, default=-max_new_tokens) + max_new_tokens


def peak_width(starts: Sequence[int], max_new_tokens: int) -> int:
    """Most sequences that a plan has active at once."""
    ended, most = 0, 0
    for begun, start in enumerate(starts, 1):
        while starts[ended] + max_new_tokens <= start:
            ended += 1
        most = max(most, begun - ended)
    return most


def lower_bound_steps(prompt_tokens: Sequence[int], max_new_tokens: int, pool: Pool) -> int:
    """No schedule without preemption takes fewer: all block-steps over the pool, and one length."""
    work = sum(pool.block_steps(prompt, max_new_tokens) for prompt in prompt_tokens)
    return max(-(-work // pool.usable_blocks), max_new_tokens if prompt_tokens else 0)
