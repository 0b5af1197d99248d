"""The start plan: never over the pool, never too wide, close to the lower bound."""

from collections.abc import Sequence

import pytest

from fitladder.errors import GateRefused
from fitladder.planner.pool import Pool
from fitladder.planner.spacing import lower_bound_steps, plan_starts, plan_steps

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


def test_nothing_to_plan() -> None:
    assert plan_starts([], 3_072, POOL, 64) == ()
    assert plan_steps([], 3_072) == 0
    assert lower_bound_steps([], 3_072, POOL) == 0


def test_refusals() -> None:
    with pytest.raises(GateRefused, match="max_num_seqs"):
        plan_starts([1], 1, POOL, 0)
    with pytest.raises(GateRefused, match="exceeds the pool"):
        plan_starts([1], 226 * 528 + 1, POOL, 64)
