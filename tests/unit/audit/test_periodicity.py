"""Where loops are and are not: handed streams, exact counts, and onsets."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from fitladder.audit import periodicity
from fitladder.audit.periodicity import LagMatch, best_lag, find_loop, nearest_lag, onset_token
from fitladder.records.settings import LoopRule

Fill = Callable[..., Any]
BUDGET = 49_152


def _irregular(low: int, high: int, total: int) -> set[int]:
    """Places at gaps drawn from low..high, the same on every platform."""
    places, at, state = set(), 0, 12_345
    while at < total:
        state = (1_103_515_245 * state + 12_345) % 2**31
        at += low + (state >> 8) % (high - low + 1)
        places.add(at)
    return places


def _inserted(places: set[int], period: int = 7, total: int = 20_000) -> list[int]:
    """A cycle of ids into which a foreign id, each time another, is inserted at these places."""
    ids, foreign = cycle(range(period)), iter(range(5_000, 9_000))
    return [next(foreign) if at in places else next(ids) for at in range(total)]


def _replaced(places: set[int], period: int = 40, total: int = 20_000) -> list[int]:
    return [5_000 + at if at in places else at % period for at in range(total)]


@pytest.mark.parametrize("gaps_percent_loop", [(300, 500, 98.0, False), (900, 1_100, 99.2, True)])
def test_a_loop_interrupted_by_inserted_ids(
    rule: LoopRule, fill: Fill, gaps_percent_loop: tuple[int, int, float, bool]
) -> None:
    low, high, percent, loop = gaps_percent_loop
    ids = fill(_inserted(_irregular(low, high, 20_000)))
    best = best_lag(ids, rule)
    assert best is not None
    assert best.matched_tokens / best.compared_tokens * 100 == pytest.approx(percent, abs=0.25)
    assert find_loop(ids, rule) == (best if loop else None)


def test_ids_inserted_at_each_multiple_of_400(rule: LoopRule, fill: Fill) -> None:
    ids = fill(_inserted(set(range(0, 20_000, 400))))
    smallest = periodicity._compare(ids[-rule.tail_tokens :], 400)
    assert (smallest.matched_tokens, smallest.compared_tokens) == (7_773, 7_792)
    match = find_loop(ids, rule)
    assert match is not None
    assert match.period_tokens % 400 == 0  # the best-matching lag is a multiple
    assert match.is_better_than(smallest)


@pytest.mark.parametrize("gaps_percent_loop", [(120, 160, 98.6, False), (240, 280, 99.2, True)])
def test_a_loop_with_single_ids_replaced(
    rule: LoopRule, fill: Fill, gaps_percent_loop: tuple[int, int, float, bool]
) -> None:
    low, high, percent, loop = gaps_percent_loop
    ids = fill(_replaced(_irregular(low, high, 20_000)))
    best = best_lag(ids, rule)
    assert best is not None
    assert best.matched_tokens / best.compared_tokens * 100 == pytest.approx(percent, abs=0.15)
    assert find_loop(ids, rule) == (best if loop else None)
    assert nearest_lag(ids, rule) == best  # the near miss is reported, with its counts


@pytest.mark.parametrize(("length", "matched", "loop"), [(8_110, 8_100, False), (8_111, 8_101, True)])
def test_a_loop_with_a_late_onset(rule: LoopRule, fill: Fill, length: int, matched: int, loop: bool) -> None:
    ids = fill([at % 10 for at in range(length)])
    match = LagMatch(10, matched, 8_182)
    assert nearest_lag(ids, rule) == match
    assert find_loop(ids, rule) == (match if loop else None)
    assert onset_token(ids, 10, rule) == len(ids) - length


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (2_047, LagMatch(2_047, 6_145, 6_145)),
        (2_048, LagMatch(2_048, 6_144, 6_144)),
        (2_049, None),
        (4_096, None),
    ],
)
def test_periods_up_to_the_longest_searched(
    rule: LoopRule, fill: Fill, block: int, expected: LagMatch | None
) -> None:
    ids = fill([at % block for at in range(40_000)])
    assert find_loop(ids, rule) == expected
    if expected:
        assert onset_token(ids, block, rule) == len(ids) - 40_000


@pytest.mark.parametrize(("differing", "matched", "loop"), [(20, 6_084, True), (21, 6_081, False)])
def test_a_block_that_alternates_with_an_altered_copy(
    rule: LoopRule, differing: int, matched: int, loop: bool
) -> None:
    block = np.arange(2_048)
    copy = block.copy()
    copy[50 : 50 + differing * 90 : 90] += 10_000
    ids = np.tile(np.concatenate([block, copy]), 12).astype(np.int32)
    assert len(ids) == 49_152
    match = LagMatch(2_048, matched, 6_144)
    assert best_lag(ids, rule) == match
    assert find_loop(ids, rule) == (match if loop else None)


def test_a_tail_where_no_lag_can_be_skipped_is_compared_exactly(rule: LoopRule) -> None:
    """Every lag of a noisy one-id tail has to be compared in full; the answer stays the naive one."""
    ids = np.zeros(8_192, dtype=np.int32)
    ids[np.arange(60, 8_192, 135)] = 1 + np.arange(len(range(60, 8_192, 135)))
    candidates = periodicity._candidates(ids, rule)
    assert len(list(candidates)) == rule.max_period_tokens
    assert nearest_lag(ids, rule) == best_lag(ids, rule)


def test_one_id_repeated_to_the_end_is_a_loop(rule: LoopRule, fill: Fill) -> None:
    ids = fill(np.zeros(40_000))
    assert find_loop(ids, rule) == LagMatch(1, 8_191, 8_191)
    assert onset_token(ids, 1, rule) == 9_152


def test_a_tail_one_short_is_no_loop(rule: LoopRule) -> None:
    for length in (0, 1, 8_191):
        ids = np.full(length, 5, dtype=np.int32)
        assert find_loop(ids, rule) is nearest_lag(ids, rule) is best_lag(ids, rule) is None


def test_the_smallest_perfect_period_wins(rule: LoopRule) -> None:
    assert find_loop(np.tile(np.arange(7, dtype=np.int32), 1_200), rule) == LagMatch(7, 8_185, 8_185)


def test_a_tie_goes_to_the_smaller_lag() -> None:
    """Lags 1 and 3 both match half of what they compare, lags 2 and 4 less."""
    rule = LoopRule(tail_tokens=9, max_period_tokens=4, min_match_rate="0.5", min_budget_tokens=1)
    ids = np.array([0, 0, 0, 0, 1, 0, 2, 1, 1], dtype=np.int32)
    rates = [periodicity._compare(ids, lag) for lag in range(1, 5)]
    assert [(one.matched_tokens, one.compared_tokens) for one in rates] == [(4, 8), (3, 7), (3, 6), (2, 5)]
    assert find_loop(ids, rule) == rates[0]


def test_pruning_never_changes_the_answer(rule: LoopRule, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(11)
    for period, noise in ((3, 0.0), (3, 0.004), (97, 0.006), (1_400, 0.01), (2_048, 0.012), (700, 0.2)):
        ids = np.tile(random.integers(0, 1_000, period), 8_192 // period + 1)[:8_192].astype(np.int32)
        ids[random.random(8_192) < noise] = 5_000
        pruned = find_loop(ids, rule)
        with monkeypatch.context() as patch:
            patch.setattr(periodicity, "_perfect", lambda *_: None)
            patch.setattr(periodicity, "_candidates", lambda *_: ((lag, 0) for lag in range(1, 2_049)))
            assert find_loop(ids, rule) == pruned


@pytest.mark.parametrize("onset", [0, 1, 100, 9_152, 30_000, 40_000])
@pytest.mark.parametrize("period", [1, 5, 400, 2_048])
def test_onset_of_a_clean_loop_is_its_first_id(rule: LoopRule, fill: Fill, onset: int, period: int) -> None:
    ids = fill([at % period for at in range(BUDGET - onset)])
    assert onset_token(ids, period, rule) == onset


def test_onset_bears_scattered_mismatches(rule: LoopRule, fill: Fill) -> None:
    loop = np.arange(30_000) % 50
    loop[500::1_000] = 7_777
    ids = fill(loop)
    assert onset_token(ids, 50, rule) == BUDGET - 30_000


def test_onset_is_the_start_of_the_last_unbroken_loop(rule: LoopRule, fill: Fill) -> None:
    """An earlier stretch at the same period counts only if the break between is within the rate."""
    loop = list(np.arange(20_000) % 50)
    apart = loop + list(range(3_000, 3_500)) + loop
    assert onset_token(fill(apart), 50, rule) == BUDGET - 20_000
    near = loop + list(range(3_000, 3_050)) + loop  # 100 mismatches against 20,000 matches
    assert onset_token(fill(near), 50, rule) == BUDGET - 40_050


def test_odd_arrays_are_refused(rule: LoopRule) -> None:
    for odd in (np.zeros((2, 8_192), np.int32), np.zeros(8_192, np.float64), np.array(["a"] * 8_192)):
        with pytest.raises(TypeError, match="integer ids"):
            find_loop(odd, rule)
