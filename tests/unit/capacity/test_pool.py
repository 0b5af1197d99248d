"""Blocks of a sequence over its life."""

import pytest

from fitladder.capacity.pool import Pool
from fitladder.errors import GateRefused

HYBRID = Pool(usable_blocks=229, block_size_tokens=528, mamba_groups=3)


@pytest.mark.parametrize(("tokens", "blocks"), [(1, 4), (528, 4), (529, 5), (1_056, 5), (1_057, 6)])
def test_a_position_needs_its_slot_and_each_mamba_group_a_block(tokens: int, blocks: int) -> None:
    assert HYBRID.held_blocks(tokens) == blocks


def test_the_last_sampled_token_is_never_computed() -> None:
    assert HYBRID.peak_blocks(528, 1) == 4
    assert HYBRID.peak_blocks(528, 2) == 5


@pytest.mark.parametrize(("tokens", "steps"), [(1, 1), (528, 1), (1, 528), (990, 3_072), (1_057, 2)])
def test_block_steps_is_the_sum_over_steps(tokens: int, steps: int) -> None:
    assert HYBRID.block_steps(tokens, steps) == sum(HYBRID.held_blocks(tokens + u) for u in range(steps))


def test_a_sequence_beyond_the_pool_is_refused() -> None:
    assert HYBRID.check_alone(528, 225 * 528 + 1) == 229
    with pytest.raises(
        GateRefused, match=r"one sequence alone exceeds the pool: got 230 blocks, need at most 229"
    ):
        HYBRID.check_alone(528, 225 * 528 + 2)


@pytest.mark.parametrize(("prompt", "output"), [(0, 1), (1, 0), (-1, 5)])
def test_empty_lengths_are_refused(prompt: int, output: int) -> None:
    with pytest.raises(GateRefused, match="sequence"):
        HYBRID.check_alone(prompt, output)


@pytest.mark.parametrize(
    "odd", [(0, 16, 0), (1, 0, 0), (1, 16, -1), (True, 16, 0), (1.0, 16, 0), (None, 16, 0)]
)
def test_odd_pools_are_refused(odd: tuple[int, int, int]) -> None:
    with pytest.raises(GateRefused, match="pool"):
        Pool(*odd)
