"""Spaced admission never preempts, and its safe start is exact: both against brute force, step by step."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from fitladder.capacity.admission import SpacedAdmission
from fitladder.capacity.admission_safety import ActiveSequence, earliest_safe_step
from fitladder.capacity.pool import Pool
from fitladder.capacity.simulator import Request, simulate
from fitladder.capacity.spaced_starts import cheapest_starts

LENGTH = 24  # the budget of the sequences drawn here


def blocks_at(pool: Pool, one: ActiveSequence, step: int) -> int:
    return pool.held_blocks(one.tokens + step) if 0 <= step < one.remaining_tokens else 0


def is_safe(pool: Pool, active: Sequence[ActiveSequence], prompt: int, start: int) -> bool:
    new = ActiveSequence(prompt, LENGTH)
    return all(
        sum(blocks_at(pool, one, step) for one in active) + blocks_at(pool, new, step - start)
        <= pool.usable_blocks
        for step in range(start + LENGTH)
    )


@st.composite
def pools(draw: st.DrawFn, longest_prompt: int) -> Pool:
    size, groups = draw(st.integers(1, 9)), draw(st.integers(0, 3))
    peak = -(-(longest_prompt + LENGTH - 1) // size) + groups
    return Pool(draw(st.integers(peak, 4 * peak)), size, groups)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Pool, list[ActiveSequence], int]:
    pool = draw(pools(12))
    prompt, active = draw(st.integers(1, 12)), list[ActiveSequence]()
    for remaining in draw(st.lists(st.integers(1, LENGTH), max_size=8)):
        one = ActiveSequence(draw(st.integers(1, 12)) + LENGTH - remaining, remaining)
        together = [*active, one]
        if all(sum(blocks_at(pool, a, u) for a in together) <= pool.usable_blocks for u in range(LENGTH)):
            active = together
    return pool, active, prompt


@given(situations())
def test_earliest_safe_step_is_the_first_of_all_safe_ones(
    situation: tuple[Pool, list[ActiveSequence], int],
) -> None:
    pool, active, prompt = situation
    first = earliest_safe_step(pool, active, prompt, LENGTH, prefill_budget_tokens=1_000)
    safe = [is_safe(pool, active, prompt, start) for start in range(LENGTH + 1)]
    assert first == safe.index(True)
    assert all(safe[first:])


@st.composite
def runs(draw: st.DrawFn) -> tuple[Pool, list[Request], int, int]:
    pool = draw(pools(12))
    count = draw(st.integers(1, 16))
    prompts = draw(st.lists(st.integers(1, 12), min_size=count, max_size=count))
    full = draw(st.booleans())
    outputs = [LENGTH if full else draw(st.integers(1, LENGTH)) for _ in prompts]
    width = draw(st.integers(1, 16))
    # from 1 prefill token a step on: prompts then take many steps, as long ones do in life
    return (
        pool,
        [Request(*pair) for pair in zip(prompts, outputs, strict=True)],
        width,
        width + draw(st.integers(1, 40)),
    )


@settings(max_examples=300)
@given(runs(), st.integers(0, 40))
def test_spaced_admission_never_preempts(case: tuple[Pool, list[Request], int, int], cost: int) -> None:
    pool, requests, width, batched = case
    prompts = [one.prompt_tokens for one in requests]
    policy = SpacedAdmission(pool, prompts, LENGTH, width, batched, cost)
    result = simulate(
        requests,
        pool,
        max_num_seqs=width,
        max_num_batched_tokens=batched,
        policy=policy,
        max_new_tokens=LENGTH,
    )
    assert (result.preemptions, result.recomputed_tokens) == (0, 0)
    assert result.sampled_tokens == sum(one.output_tokens for one in requests)
    assert result.peak_blocks <= pool.usable_blocks
    assert result.peak_width <= width


@given(runs(), st.integers(0, 40))
def test_a_plan_holds_at_every_step(case: tuple[Pool, list[Request], int, int], cost: int) -> None:
    pool, requests, width, _ = case
    prompts = [one.prompt_tokens for one in requests]
    starts = cheapest_starts(prompts, LENGTH, pool, width, cost)
    assert starts[0] == 0
    assert list(starts) == sorted(starts)
    for step in range(starts[-1] + LENGTH):
        ages = [(p, step - s) for p, s in zip(prompts, starts, strict=True) if 0 <= step - s < LENGTH]
        assert len(ages) <= width
        assert sum(pool.held_blocks(p + age) for p, age in ages) <= pool.usable_blocks
