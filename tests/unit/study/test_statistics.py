"""Ratios and their spread, against hand arithmetic and against what any interval must obey."""

import pytest

from fitladder.study.statistics import mean_seconds, ratio_interval, significant, speed_interval


def test_speed_is_all_tokens_over_all_seconds() -> None:
    speed = speed_interval(100, [1.0, 2.0, 3.0], seed="a")
    assert speed.value == 50.0
    assert speed.low is not None
    assert speed.high is not None
    assert 33.3 < speed.low < speed.value < speed.high <= 100


def test_equal_repeats_have_no_spread() -> None:
    speed = speed_interval(100, [2.0] * 5, seed="a")
    assert (speed.low, speed.value, speed.high) == (50.0, 50.0, 50.0)


def test_fewer_than_three_repeats_have_no_interval() -> None:
    speed = speed_interval(100, [1.0, 1.0], seed="a")
    assert (speed.low, speed.high, speed.repeats) == (None, None, 2)


def test_blocks_are_resampled_together() -> None:
    """A machine that slows down for a while slows both cells of a block: the ratio stays."""
    ratio = ratio_interval([2.0, 20.0, 4.0], [1.0, 10.0, 2.0], seed="a")
    assert (ratio.low, ratio.value, ratio.high) == (2.0, 2.0, 2.0)


def test_an_interval_widens_with_the_spread_and_repeats_exactly() -> None:
    narrow = ratio_interval([1.0, 1.01, 0.99, 1.0], [1.0] * 4, seed="a")
    wide = ratio_interval([1.0, 1.5, 0.5, 1.0], [1.0] * 4, seed="a")
    assert narrow.low is not None
    assert narrow.high is not None
    assert wide.low is not None
    assert wide.high is not None
    assert wide.high - wide.low > 10 * (narrow.high - narrow.low)
    assert wide == ratio_interval([1.0, 1.5, 0.5, 1.0], [1.0] * 4, seed="a")


def test_small_helpers() -> None:
    assert significant(1234.56789) == 1234.57
    assert significant(0.000123456789) == 0.000123457
    assert mean_seconds([1.0, 2.0]) == pytest.approx(1.5)
