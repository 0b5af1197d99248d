"""The fit rules against the registered history, and every way in which a figure can be unfit."""

import pytest

from fitladder.capacity import kv_blocks as capacity
from fitladder.capacity.kv_rule import KvPool, decide_kv_fit
from fitladder.errors import GateRefused

HISTORY = [  # budget, width, KV tokens, required, margin
    (49_152, 19, 997_888, 963_072, 34_816),
    (61_440, 15, 997_888, 950_400, 47_488),
    (49_152, 19, 996_864, 963_072, 33_792),
]


def widest_by_both(longest: int, pool: KvPool) -> int | None:
    return decide_kv_fit(
        pool, rule="both", spaced=False, longest_sequence_tokens=longest, active_sequences=1
    ).widest


@pytest.mark.parametrize(("budget", "width", "kv_tokens", "required", "margin"), HISTORY)
def test_registered_history(budget: int, width: int, kv_tokens: int, required: int, margin: int) -> None:
    longest = capacity.longest_sequence_tokens(990, budget, 2, 512)  # the base arm's longest prompt
    fit = capacity.token_rule(longest, 528, width, kv_tokens)
    assert (fit.required_tokens, fit.margin_tokens, fit.fits) == (required, margin, True)
    assert capacity.largest_width_by_tokens(longest, 528, kv_tokens) == width


def test_direct_parent_demanded_more_than_twice_the_pool() -> None:
    fit = capacity.token_rule(50_688, 528, 48, 995_328)
    assert fit == capacity.TokenFit(50_688, 2_433_024, 995_328 - 2_433_024, False)


@pytest.mark.parametrize(
    ("prompt", "budget", "width", "blocks"),
    [(990, 49_152, 19, 99), (1_060, 49_152, 19, 100), (990, 61_440, 15, 123), (1_060, 61_440, 15, 123)],
)
def test_block_rule_of_the_two_rungs_in_both_arms(prompt: int, budget: int, width: int, blocks: int) -> None:
    longest = capacity.longest_sequence_tokens(prompt, budget, 2, 512)
    usable = capacity.usable_pool_blocks(1_949)
    fit = capacity.block_rule(longest, 528, 3, width, usable)
    assert fit == capacity.BlockFit(blocks, width * blocks, 1_948 - width * blocks, True)
    assert capacity.largest_width_by_blocks(longest, 528, 3, usable) == width
    assert widest_by_both(longest, KvPool(528, 3, 997_888, 1_949)) == width


def test_block_rule_is_stricter_on_a_hybrid_at_short_lengths() -> None:
    kv_tokens = capacity.kv_tokens_for_blocks(230, 128, 65_536)
    by_tokens = capacity.largest_width_by_tokens(528, 528, kv_tokens)
    by_blocks = capacity.largest_width_by_blocks(528, 528, 3, 229)
    assert (by_tokens, by_blocks) == (223, 57)  # counting attention alone promises four times too much
    assert widest_by_both(528, KvPool(528, 3, kv_tokens, 230)) == 57


@pytest.mark.parametrize(("blocks", "tokens"), [(1_949, 997_888), (1_947, 996_864), (1_944, 995_328)])
def test_kv_tokens_of_the_registered_pools(blocks: int, tokens: int) -> None:
    assert capacity.blocks_per_sequence(65_536, 528, 3) == 128
    assert capacity.kv_tokens_for_blocks(blocks, 128, 65_536) == tokens
    assert capacity.blocks_for_kv_tokens(tokens, 128, 65_536) == blocks


def test_a_token_figure_between_two_pools_is_refused() -> None:
    with pytest.raises(GateRefused, match="no whole number of blocks"):
        capacity.blocks_for_kv_tokens(997_889, 128, 65_536)


@pytest.mark.parametrize(("block", "width"), [(16, 15), (528, 15), (784, 15), (2_096, 14), (7_808, 14)])
def test_an_inflated_block_size(block: int, width: int) -> None:
    assert capacity.largest_width_by_tokens(65_000, block, 999_936) == width
    assert capacity.token_rule(65_000, block, 15, 999_936).fits is (width == 15)


def test_a_capacity_that_contradicts_its_blocks() -> None:
    with pytest.raises(GateRefused, match=r"300000 KV tokens beside 33.0x.*need 990000"):
        capacity.check_concurrency(300_000, 33.0, 30_000, printed=True)
    capacity.check_concurrency(997_888, 1_949 / 128, 65_536)
    capacity.check_concurrency(997_888, 15.23, 65_536, printed=True)
    with pytest.raises(GateRefused, match="inconsistent"):
        capacity.check_concurrency(997_888, 15.23, 65_536)


def test_the_capacity_of_each_start_counts() -> None:
    widths = [capacity.largest_width_by_tokens(65_000, 528, tokens) for tokens in (1_000_032, 940_000)]
    assert widths == [15, 14]


@pytest.mark.parametrize("block", [None, 0, -16, True, 528.0, "528"])
def test_a_block_size_absent_or_odd(block: object) -> None:
    with pytest.raises(GateRefused, match="block size"):
        capacity.token_rule(65_000, block, 15, 999_936)  # type: ignore[arg-type]  # the fault under test
    with pytest.raises(GateRefused, match="block size"):
        capacity.block_rule(65_000, block, 0, 15, 100)  # type: ignore[arg-type]  # the fault under test


@pytest.mark.parametrize("value", [0, -1, True, None, 1.5])
def test_every_other_figure_is_checked(value: object) -> None:
    calls = [
        lambda: capacity.token_rule(value, 16, 1, 100),
        lambda: capacity.token_rule(1, 16, value, 100),
        lambda: capacity.token_rule(1, 16, 1, value),
        lambda: capacity.block_rule(1, 16, 0, 1, value),
        lambda: capacity.usable_pool_blocks(value),
        lambda: capacity.kv_tokens_for_blocks(value, 1, 1),
        lambda: capacity.kv_tokens_for_blocks(1, value, 1),
    ]
    for call in calls:
        with pytest.raises(GateRefused, match="no fit can be shown"):
            call()


@pytest.mark.parametrize("concurrency", [0.0, -1.0, float("nan"), float("inf"), True])
def test_concurrency_must_be_a_positive_number(concurrency: float) -> None:
    with pytest.raises(GateRefused, match="concurrency"):
        capacity.check_concurrency(100, concurrency, 100)
