"""The simulator against a plain model that takes every step and counts every block, with nothing skipped."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fitladder.capacity.pool import Pool
from fitladder.capacity.simulator import Request, simulate


def plain_run(
    requests: list[Request], pool: Pool, width: int, batched: int
) -> tuple[int, int, int, dict[int, int]]:
    """Steps, preemptions, scheduled tokens and steps per width, from lists of dictionaries."""
    waiting = [
        {"t": r.prompt_tokens, "c": 0, "b": 0, "end": r.prompt_tokens + r.output_tokens} for r in requests
    ]
    running: list[dict[str, int]] = []
    steps = preemptions = scheduled = 0
    widths: dict[int, int] = {}

    def used() -> int:
        return sum(one["b"] + pool.mamba_groups for one in running)

    def blocks(positions: int) -> int:
        return -(-positions // pool.block_size_tokens)

    while waiting or running:
        left, batch, preempted, index = batched, [], False, 0
        while index < len(running) and left:
            one = running[index]
            new = min(one["t"] - one["c"], left)
            while (
                any(one is other for other in running)
                and used() + blocks(one["c"] + new) - one["b"] > pool.usable_blocks
            ):
                victim = running.pop()
                victim["c"] = victim["b"] = 0
                waiting.insert(0, victim)
                preempted, preemptions = True, preemptions + 1
            if not any(one is other for other in running):
                break
            one["b"] = max(one["b"], blocks(one["c"] + new))
            batch.append((one, new))
            left -= new
            index += 1
        while not preempted and waiting and len(running) < width and left:
            if used() + blocks(waiting[0]["t"]) + pool.mamba_groups > pool.usable_blocks:
                break
            one = waiting.pop(0)
            new = min(one["t"], left)
            one["b"] = blocks(new)
            running.append(one)
            batch.append((one, new))
            left -= new
        steps += 1
        scheduled += batched - left
        widths[len(batch)] = widths.get(len(batch), 0) + 1
        for one, new in batch:
            one["c"] += new
            one["t"] += one["c"] == one["t"]
        running = [one for one in running if one["t"] < one["end"]]
    return steps, preemptions, scheduled, widths


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Request], Pool, int, int]:
    requests = draw(
        st.lists(st.builds(Request, st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=14)
    )
    size, groups = draw(st.integers(1, 20)), draw(st.integers(0, 3))
    peak = max(-(-(one.prompt_tokens + one.output_tokens - 1) // size) + groups for one in requests)
    width = draw(st.integers(1, 14))
    return (
        requests,
        Pool(peak + draw(st.integers(0, 2 * peak)), size, groups),
        width,
        width + draw(st.integers(0, 200)),
    )


@settings(max_examples=300)
@given(cases())
@example(([Request(1, 5), Request(12, 2)], Pool(5, 3, 0), 2, 2))  # one-token chunks of a prompt
def test_skipping_changes_nothing(case: tuple[list[Request], Pool, int, int]) -> None:
    requests, pool, width, batched = case
    result = simulate(requests, pool, max_num_seqs=width, max_num_batched_tokens=batched)
    plain = plain_run(requests, pool, width, batched)
    assert (result.steps, result.preemptions, result.scheduled_tokens, dict(result.width_steps)) == plain
