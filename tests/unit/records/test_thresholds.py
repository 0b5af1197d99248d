"""Every threshold at its edges, for every size of a set up to 200, against exact fractions."""

from fractions import Fraction

import pytest

from fitladder.canonical import Rate
from fitladder.records.settings import Thresholds

SIZES = range(1, 201)
REGISTERED = Thresholds(
    unresolved_rate_below="0.05", answer_limit_rate_below="0.05", loop_rate_at_most="0.25"
)


@pytest.mark.parametrize("text", ["0.05", "0.25", "0.5", "0.99", "0.1", "0.3", "0.07", "0.333333333"])
def test_the_three_comparisons_never_round(text: str) -> None:
    rate, exact = Rate.parse(text), Fraction(text)
    for size in SIZES:
        for count in range(size + 1):
            share = Fraction(count, size)
            assert rate.share_is_below(count, size) is (share < exact)
            assert rate.share_is_at_most(count, size) is (share <= exact)
            assert rate.is_reached_by(count, size) is (share >= exact)


def test_the_registered_verdict_at_every_edge() -> None:
    """The most contacts that each ceiling bears, and one more; a float cannot tell 3 of 60 from 5 %."""
    for size in SIZES:
        below = -(-size // 20) - 1  # the largest count under 5 %
        at_most = size // 4
        keep = {"unresolved": below, "answer_limit": below, "loops": at_most, "samples": size}
        assert REGISTERED.are_kept(**keep)
        for name in ("unresolved", "answer_limit", "loops"):
            assert not REGISTERED.are_kept(**keep | {name: keep[name] + 1})


def test_an_empty_set_keeps_no_threshold_and_reaches_none() -> None:
    rate = Rate.parse("0.05")
    assert not rate.share_is_below(0, 0)
    assert not rate.share_is_at_most(0, 0)
    assert not rate.is_reached_by(0, 0)
    assert not REGISTERED.are_kept(unresolved=0, answer_limit=0, loops=0, samples=0)


def test_the_loop_share_is_the_registered_mismatch_rule_at_every_lag() -> None:
    """mismatches <= floor((8192 - p) * 0.01 + 1e-12), as it was registered, for every period searched."""
    rate = Rate.parse("0.99")
    for lag in range(1, 2_049):
        compared = 8_192 - lag
        allowed = int(compared * 0.01 + 1e-12)
        assert rate.is_reached_by(compared - allowed, compared)
        assert not rate.is_reached_by(compared - allowed - 1, compared)
