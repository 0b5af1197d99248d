"""Both rules, the live figures, and the widths that the registered history had."""

import pytest

from fitladder.capacity.widest_batch import MOST_POOL_BLOCKS, Cache, plan_capacity, settle_pool_blocks
from fitladder.errors import GateRefused

LIVE = Cache(block_size_tokens=528, mamba_groups=3, pool_blocks=1_949, max_model_len_tokens=65_536)


@pytest.mark.parametrize(
    ("budget", "width", "sizes", "uncovered", "margins"),
    [
        (49_152, 19, (1, 2, 4, 8, 16, 19), (17, 18, 19), (34_816, 67)),
        (61_440, 15, (1, 2, 4, 8, 15), (9, 10, 11, 12, 13, 14, 15), (47_488, 103)),
    ],
)
def test_the_registered_rungs(
    budget: int, width: int, sizes: tuple[int, ...], uncovered: tuple[int, ...], margins: tuple[int, int]
) -> None:
    plan = plan_capacity(LIVE, 990 + budget + 2 + 512, max_num_batched_tokens=32_768)
    assert plan.kv_cache_size_tokens == 997_888
    assert (plan.max_num_seqs, plan.max_num_seqs_by_tokens, plan.max_num_seqs_by_blocks) == (width,) * 3
    assert (plan.capture_sizes, plan.uncovered_widths_if_implicit) == (sizes, uncovered)
    assert (plan.tokens.margin_tokens, plan.blocks.margin_blocks) == margins


def test_the_stricter_rule_decides() -> None:
    plan = plan_capacity(LIVE, 512, max_num_batched_tokens=32_768)
    assert (plan.max_num_seqs_by_tokens, plan.max_num_seqs_by_blocks) == (1_889, 487)
    assert plan.max_num_seqs == 487


@pytest.mark.parametrize(("block", "width"), [(16, 15), (528, 15), (784, 15), (2_096, 14), (7_808, 14)])
def test_inflated_block_sizes(block: int, width: int) -> None:
    # the case states tokens alone: here the pool that reports just as many, or the next more
    pool = -(-999_936 * -(-65_536 // block) // 65_536)
    plan = plan_capacity(Cache(block, 0, pool, 65_536), 65_000, max_num_batched_tokens=32_768)
    assert plan.max_num_seqs == width


def test_contradicting_pool_figures() -> None:
    live = {"block_size_tokens": 528, "mamba_groups": 3, "max_model_len_tokens": 65_536}
    assert settle_pool_blocks(**live, blocks=None, kv_tokens=None) is None
    assert settle_pool_blocks(**live, blocks=1_949, kv_tokens=None) == 1_949
    assert settle_pool_blocks(**live, blocks=None, kv_tokens=997_888) == 1_949
    with pytest.raises(GateRefused, match="1000 blocks beside 997888 KV tokens"):
        settle_pool_blocks(**live, blocks=1_000, kv_tokens=997_888)
    with pytest.raises(GateRefused, match="no whole number of blocks"):
        settle_pool_blocks(**live, blocks=None, kv_tokens=300_000)


def test_another_start_another_width() -> None:
    widths = []
    for kv_tokens in (1_000_032, 940_000):
        blocks = kv_tokens * 128 // 65_536
        plan = plan_capacity(Cache(528, 3, blocks, 65_536), 65_000, max_num_batched_tokens=32_768)
        widths.append(plan.max_num_seqs_by_tokens)
    assert widths == [15, 14]


def test_a_sequence_beyond_max_model_len() -> None:
    fits = 15_870 + 49_152 + 2 + 512
    assert plan_capacity(LIVE, fits, max_num_batched_tokens=32_768).max_total_tokens == 65_536
    with pytest.raises(GateRefused, match="65537 tokens, 1 over"):
        plan_capacity(LIVE, fits + 1, max_num_batched_tokens=32_768)


def test_a_pool_for_not_even_one() -> None:
    with pytest.raises(GateRefused, match="not one sequence fits: got 99 blocks a sequence, need at most 98"):
        plan_capacity(Cache(528, 3, 99, 65_536), 50_656, max_num_batched_tokens=32_768)


def test_a_pool_that_no_device_holds_is_a_typing_error() -> None:
    most = Cache(528, 3, MOST_POOL_BLOCKS, 65_536)
    assert plan_capacity(most, 65_536, max_num_batched_tokens=64).max_num_seqs == 64
    with pytest.raises(GateRefused, match="pool blocks: got 10000001, need at most 10000000"):
        plan_capacity(Cache(528, 3, MOST_POOL_BLOCKS + 1, 65_536), 65_536, max_num_batched_tokens=64)
