"""Starts of sequences that keep a pool full all the time: the plan that spaced admission follows.

Sequences grow until they end, so packing them forwards needs foresight: those started together peak
together. Seen backwards from the end they only shrink, and the greedy packing needs none: whenever there is
room for a peak, the next sequence ends there. Turned round, that is a schedule whose pool never lacks more
than one peak of blocks, but for the ramp at the start. Groups that start together waste a little of it, and
save steps that prefill beside decodes. It knows lengths and a pool; safety is not its business.
"""

import heapq
from collections.abc import Iterator, Sequence

from fitladder.capacity.pool import Pool
from fitladder.errors import GateRefused

__all__ = ["cheapest_starts", "lower_bound_steps", "peak_width", "plan_starts", "plan_steps"]

MOST_CHANGES = 512  # a sequence of more blocks gives them up in groups, a little late: a plan stays quick
LARGEST_GROUP = 16


def plan_starts(
    prompt_tokens: Sequence[int], max_new_tokens: int, pool: Pool, max_num_seqs: int, group: int = 1
) -> tuple[int, ...]:
    """Start step of each sequence, first come first, if all run to max_new_tokens; the first is 0.

    Never more than max_num_seqs at once and never more blocks than the pool's. Sequences start `group` at a
    time (the first group is what remains). Under a second for hundreds. Raises GateRefused where one sequence
    alone exceeds the pool, or a group pool or width.
    """
    if max_num_seqs < 1:
        raise GateRefused("max_num_seqs", got=max_num_seqs, need="at least 1")
    if not 1 <= group <= max_num_seqs:
        raise GateRefused("start group", got=group, need=f"1 to {max_num_seqs}")
    changes: list[tuple[int, int, int]] = []  # step back, blocks freed, sequences gone
    ends: list[int] = []  # steps between each sequence's end and the end of all, last sequence first
    free, width, back = pool.usable_blocks, 0, 0
    peaks = [pool.check_alone(prompt, max_new_tokens) for prompt in prompt_tokens]
    for last in range(len(peaks), 0, -group):
        members = range(max(0, last - group), last)
        need = sum(peaks[member] for member in members)
        if need > pool.usable_blocks:
            raise GateRefused("start group", got=f"{need} blocks", need=f"at most {pool.usable_blocks}")
        while free < need or width + len(members) > max_num_seqs:
            back, blocks, gone = heapq.heappop(changes)
            free, width = free + blocks, width - gone
            while changes and changes[0][0] == back:
                _, blocks, gone = heapq.heappop(changes)
                free, width = free + blocks, width - gone
        free, width = free - need, width + len(members)
        for member in reversed(members):
            for change in _given_up(prompt_tokens[member], max_new_tokens, pool, back):
                heapq.heappush(changes, change)
            ends.append(back)
    longest = max(ends, default=0)
    return tuple(longest - end for end in reversed(ends))


def _given_up(prompt: int, max_new_tokens: int, pool: Pool, back: int) -> Iterator[tuple[int, int, int]]:
    """What a sequence that ends `back` steps before the end of all gives up, seen backwards, and when."""
    size = pool.block_size_tokens
    first, last = -(-prompt // size), -(-(prompt + max_new_tokens - 1) // size)
    length, step = back + prompt + max_new_tokens - 1, -(-(last - first) // MOST_CHANGES) or 1
    for reached in range(last - step, first - 1, -step):  # backwards, blocks go when these are enough
        yield length - reached * size, step, 0
    kept = last - (last - first) // step * step + pool.mamba_groups
    yield back + max_new_tokens, kept, 1


def cheapest_starts(
    prompt_tokens: Sequence[int],
    max_new_tokens: int,
    pool: Pool,
    max_num_seqs: int,
    start_cost_steps: int,
) -> tuple[int, ...]:
    """The plan of the group size (1 to 16, that pool and width hold) whose steps and starts cost least.

    `start_cost_steps`: decode steps that one step with a prefill in it costs beyond its tokens, however many
    sequences start in it; where all of them are a hundredth of the run, none is saved. Smaller groups win
    ties. Raises as `plan_starts` does.
    """
    best = plan_starts(prompt_tokens, max_new_tokens, pool, max_num_seqs)

    def cost(starts: tuple[int, ...]) -> int:
        return plan_steps(starts, max_new_tokens) + start_cost_steps * len(set(starts))

    if start_cost_steps * len(set(best)) * 100 <= plan_steps(best, max_new_tokens):
        return best  # fewer starts could gain a hundredth at most
    peak = max(pool.check_alone(prompt, max_new_tokens) for prompt in prompt_tokens)
    for group in range(2, min(LARGEST_GROUP, max_num_seqs, pool.usable_blocks // peak) + 1):
        best = min(best, plan_starts(prompt_tokens, max_new_tokens, pool, max_num_seqs, group), key=cost)
    return best


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
