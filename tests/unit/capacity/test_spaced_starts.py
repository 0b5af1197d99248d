"""The start plan: never over the pool, never too wide, close to the lower bound."""

from collections.abc import Sequence

import pytest

from fitladder.capacity.pool import Pool
from fitladder.capacity.spaced_starts import cheapest_starts, lower_bound_steps, plan_starts, plan_steps
from fitladder.errors import GateRefused

POOL = Pool(229, 528, 3)
BASE_ARM = (978, 990, 980, 986, 974, 980, 975, 985, 987, 984, 982, 983)  # registered prompt lengths


def in_use(prompts: Sequence[int], starts: Sequence[int], length: int, pool: Pool, step: int) -> int:
    return sum(
        pool.held_blocks(p + step - s) for p, s in zip(prompts, starts, strict=True) if s <= step < s + length
    )


@pytest.mark.parametrize(
    ("sequences", "steps", "bound"), [(48, 6_957, 5_329), (144, 18_048, 15_986), (480, 56_186, 53_287)]
)
def test_quality_against_the_lower_bound(sequences: int, steps: int, bound: int) -> None:
    prompts = [BASE_ARM[i % 12] for i in range(sequences)]
    starts = plan_starts(prompts, 3_072, POOL, 64)
    assert plan_steps(starts, 3_072) == steps
    assert lower_bound_steps(prompts, 3_072, POOL) == bound


@pytest.mark.parametrize("width", [1, 5, 20, 24, 64])
def test_a_plan_never_exceeds_pool_or_width(width: int) -> None:
    prompts = [BASE_ARM[i % 12] for i in range(48)]
    starts = plan_starts(prompts, 3_072, POOL, width)
    assert starts[0] == 0
    assert list(starts) == sorted(starts)
    ends = [start + 3_072 for start in starts]
    for step in (end - 1 for end in ends):  # use only falls at ends
        assert in_use(prompts, starts, 3_072, POOL, step) <= 229
        assert sum(s <= step < e for s, e in zip(starts, ends, strict=True)) <= width


@pytest.mark.parametrize("group", [2, 3, 7, 20])
def test_groups_start_together_and_never_exceed_the_pool(group: int) -> None:
    prompts = [BASE_ARM[i % 12] for i in range(50)]
    starts = plan_starts(prompts, 3_072, POOL, 24, group)
    assert len(set(starts)) <= -(-50 // group)
    assert list(starts) == sorted(starts)
    for end in (start + 3_072 for start in starts):
        assert in_use(prompts, starts, 3_072, POOL, end - 1) <= 229
        assert sum(s < end <= s + 3_072 for s in starts) <= 24


def test_a_price_on_starts_buys_fewer_of_them() -> None:
    """The H200 cell: 133 blocks, 144 samples of 650 tokens; alone each would start in one of 91 steps."""
    prompts, pool = [BASE_ARM[i % 12] for i in range(144)], Pool(133, 528, 3)
    single, priced = (cheapest_starts(prompts, 650, pool, 64, cost) for cost in (0, 9))
    assert single == plan_starts(prompts, 650, pool, 64)
    assert (plan_steps(single, 650), len(set(single))) == (4_550, 91)
    assert (plan_steps(priced, 650), len(set(priced))) == (4_605, 14)
    assert priced == plan_starts(prompts, 650, pool, 64, group=7)


def test_long_runs_start_each_sequence_by_itself() -> None:
    """A registered phase: 49,152 tokens each; what starts cost is nothing there."""
    prompts, pool = [BASE_ARM[i % 12] for i in range(144)], Pool(1948, 528, 3)
    assert cheapest_starts(prompts, 49_152, pool, 64, 9) == plan_starts(prompts, 49_152, pool, 64)


def test_nothing_to_plan() -> None:
    assert plan_starts([], 3_072, POOL, 64) == cheapest_starts([], 3_072, POOL, 64, 9) == ()
    assert plan_steps([], 3_072) == 0
    assert lower_bound_steps([], 3_072, POOL) == 0


def test_refusals() -> None:
    with pytest.raises(GateRefused, match="max_num_seqs"):
        plan_starts([1], 1, POOL, 0)
    with pytest.raises(GateRefused, match="start group"):
        plan_starts([1] * 4, 1, POOL, 3, group=4)
    with pytest.raises(GateRefused, match=r"start group.*231 blocks"):
        plan_starts([990] * 21, 3_072, POOL, 64, group=21)
    with pytest.raises(GateRefused, match="exceeds the pool"):
        plan_starts([1], 226 * 528 + 1, POOL, 64)
