"""Periodic runs anywhere in a row: equal to trying every window at every lag, on short and on hard rows."""

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitladder.audit.loop_runs import LoopRun, burned_tokens, find_runs
from fitladder.audit.periodicity import find_loop
from fitladder.records.settings import LoopRule


def _rule(tail: int, longest: int, rate: str) -> LoopRule:
    return LoopRule(tail_tokens=tail, max_period_tokens=longest, min_match_rate=rate, min_budget_tokens=1)


REGISTERED = _rule(8_192, 2_048, "0.99")


def brute_runs(ids: list[int], rule: LoopRule) -> tuple[LoopRun, ...]:
    """The definition, word for word: every window of every lag, every part of every covered stretch."""
    kept: set[int] = set()
    runs = []
    for lag in range(1, rule.max_period_tokens + 1):
        compared = [ids[i] == ids[i - lag] for i in range(lag, len(ids))]
        window = rule.tail_tokens - lag
        covered = [False] * len(compared)
        sums = [0, *accumulate(compared)]
        for begin in range(len(compared) - window + 1):
            if rule.min_match_rate.is_reached_by(sums[begin + window] - sums[begin], window):
                covered[begin : begin + window] = [True] * window
        begin = 0
        while begin < len(covered):
            end = begin
            while end < len(covered) and covered[end]:
                end += 1
            places = set(range(begin + lag, end + lag))
            if places and 2 * len(places & kept) < len(places):
                run = _brute_trimmed(compared, begin, end, lag, rule)
                kept |= set(range(run.start_token, run.end_token))
                runs.append(run)
            begin = end + 1
    return tuple(sorted(runs, key=lambda run: (run.start_token, run.period_tokens)))


def _brute_trimmed(compared: list[bool], begin: int, end: int, lag: int, rule: LoopRule) -> LoopRun:
    rate: Fraction = rule.min_match_rate.value
    window = rule.tail_tokens - lag
    sums = [Fraction(0)]
    for match in compared[begin:end]:
        sums.append(sums[-1] + (1 - rate if match else -rate))
    start = min(range(begin, begin + window + 1), key=lambda place: (sums[place - begin], place))
    stop = max(range(end - window, end + 1), key=lambda place: (sums[place - begin], place))
    if start < stop:
        return LoopRun(start, stop + lag, lag, sum(compared[start:stop]), stop - start)
    best = None
    for start in range(begin, end):
        score = Fraction(0)
        for stop in range(start + 1, end + 1):
            score += 1 - rate if compared[stop - 1] else -rate
            entry = (score, stop - start, -start)
            if best is None or entry > best:
                best = entry
    _, length, start = best
    matched = sum(compared[-start : -start + length])
    return LoopRun(-start, -start + length + lag, lag, matched, length)


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[int], LoopRule]:
    """Rows of planted loops between other ids, with a few mismatches, over small and large alphabets."""
    tail = draw(st.integers(8, 40))
    longest = draw(st.integers(1, tail // 2))
    rule = _rule(tail, longest, draw(st.sampled_from(["0.5", "0.8", "0.9", "0.95", "0.99"])))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    letters = draw(st.sampled_from([2, 4, 1_000]))
    ids: list[int] = []
    for _ in range(draw(st.integers(1, 4))):
        ids.extend(random.integers(0, letters, draw(st.integers(0, 12))).tolist())
        unit = random.integers(0, letters, draw(st.integers(1, longest + 2)))
        ids.extend(np.resize(unit, draw(st.integers(0, 2 * tail))).tolist())
    for at in random.integers(0, max(1, len(ids)), draw(st.integers(0, 4))).tolist():
        if ids:
            ids[at] = int(random.integers(0, letters))
    return ids[:130], rule


@settings(max_examples=400, deadline=None)
@given(rows())
def test_runs_equal_every_window_at_every_lag(row: tuple[list[int], LoopRule]) -> None:
    ids, rule = row
    assert find_runs(np.array(ids, dtype=np.int32), rule) == brute_runs(ids, rule)


@st.composite
def long_rows(draw: st.DrawFn) -> tuple[list[int], LoopRule]:
    """Rows in which windows hold a few mismatches and lags are selected and dropped by anchors and strips."""
    longest = draw(st.integers(2, 40))
    rule = _rule(draw(st.integers(200, 400)), longest, draw(st.sampled_from(["0.97", "0.98", "0.99"])))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    letters = draw(st.sampled_from([2, 50, 100_000]))
    ids: list[int] = []
    for _ in range(draw(st.integers(1, 3))):
        ids.extend(random.integers(0, letters, draw(st.integers(0, 300))).tolist())
        unit = random.integers(
            0, letters, draw(st.integers(1, max(1, longest // draw(st.sampled_from([1, 2, 3])))))
        )
        ids.extend(np.resize(unit, draw(st.integers(0, 700))).tolist())
    for at in random.integers(0, max(1, len(ids)), draw(st.integers(0, 12))).tolist():
        if ids:
            ids[at] = int(random.integers(0, letters))
    return ids, rule


@settings(max_examples=120, deadline=None)
@given(long_rows())
def test_dropped_lags_would_have_given_no_run(row: tuple[list[int], LoopRule]) -> None:
    ids, rule = row
    assert find_runs(np.array(ids, dtype=np.int32), rule) == brute_runs(ids, rule)


@settings(max_examples=150, deadline=None)
@given(rows())
def test_no_run_means_no_loop_of_the_tail(row: tuple[list[int], LoopRule]) -> None:
    ids, rule = row
    if not find_runs(np.array(ids, dtype=np.int32), rule):
        assert find_loop(np.array(ids, dtype=np.int32), rule) is None


@settings(max_examples=150, deadline=None)
@given(rows())
def test_runs_lie_in_the_row_and_burn_each_id_once(row: tuple[list[int], LoopRule]) -> None:
    ids, rule = row
    runs = find_runs(np.array(ids, dtype=np.int32), rule)
    places: set[int] = set()
    for run in runs:
        assert 0 <= run.start_token < run.end_token <= len(ids)
        assert run.end_token - run.start_token == run.compared_tokens + run.period_tokens
        places |= set(range(run.start_token, run.end_token))
    assert burned_tokens(runs) == len(places)


def _distinct(count: int, first: int = 1_000_000) -> list[int]:
    return list(range(first, first + count))


def _runs(ids: object) -> list[tuple[int, int, int]]:
    found = find_runs(np.asarray(ids, dtype=np.int32), REGISTERED)
    return [(run.start_token, run.end_token, run.period_tokens) for run in found]


@pytest.mark.parametrize("period", [1, 2, 7, 300, 1_031, 2_048])
def test_a_planted_loop_is_found_where_it_is(period: int) -> None:
    random = np.random.default_rng(period)
    loop = np.resize(random.permutation(50_000)[:period], 12_000)
    assert _runs([*_distinct(5_000), *loop, *_distinct(3_000, 2_000_000)]) == [(5_000, 17_000, period)]


def test_several_loops_in_a_row_each_have_an_onset() -> None:
    ids = [*_distinct(1_000), *np.resize(range(7), 9_000), *_distinct(500, 2_000_000)]
    ids += [*np.resize(range(10, 310), 10_000), *np.resize(range(400, 405), 9_000), *_distinct(9, 3_000_000)]
    assert _runs(ids) == [(1_000, 10_000, 7), (10_500, 20_500, 300), (20_500, 29_500, 5)]


def test_a_period_just_beyond_the_limit_is_no_run() -> None:
    assert _runs(np.resize(np.arange(2_048), 32_768)) == [(0, 32_768, 2_048)]
    assert _runs(np.resize(np.arange(2_049), 32_768)) == []


@pytest.mark.parametrize("period", [1_031, 1_999])
def test_a_window_that_misses_the_rate_by_one_mismatch_is_no_run(period: int) -> None:
    """Prime periods above half the limit: no other lag up to the limit repeats."""
    window = 8_192 - period
    allowed = window // 100
    gap = window // (allowed + 1)
    for mismatches in (allowed, allowed + 1):
        ids = np.resize(np.arange(period), 8_192)
        # an id that differs from the one a period before, and the next equals it again: one mismatch each
        for at in range(period, period + mismatches * gap, gap):
            ids[at::period] += 100_000 + at
        missed = int((ids[period:] != ids[:-period]).sum())
        assert missed == mismatches
        assert (len(_runs(ids)) == 1) == (mismatches == allowed)
        assert (find_loop(ids.astype(np.int32), REGISTERED) is not None) == (mismatches == allowed)


def test_thue_morse_words_hold_no_run() -> None:
    assert _runs([at.bit_count() & 1 for at in range(32_768)]) == []


def test_fibonacci_words_repeat_at_a_fibonacci_number_at_the_rate() -> None:
    older, word = [0], [0, 1]
    while len(word) < 32_768:
        older, word = word, word + older
    (run,) = _runs(word[:32_768])
    start, end, period = run
    assert period == 89
    assert end - start > 8_192
