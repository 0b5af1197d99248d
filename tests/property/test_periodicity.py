"""The pruned search against ten naive lines, on streams that nearly repeat, around the registered rate."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fitladder.audit.periodicity import LagMatch, best_lag, find_loop, nearest_lag, onset_token
from fitladder.records.settings import LoopRule


def oracle(ids: list[int], rule: LoopRule) -> LagMatch | None:
    tail, best, best_rate = ids[-rule.tail_tokens :], None, Fraction(-1)
    if len(tail) < rule.tail_tokens:
        return None
    for lag in range(1, rule.max_period_tokens + 1):
        matched = sum(tail[at] == tail[at - lag] for at in range(lag, len(tail)))
        rate = Fraction(matched, len(tail) - lag)
        if rate > best_rate:
            best, best_rate = LagMatch(lag, matched, len(tail) - lag), rate
    allowed = int((len(tail) - best.period_tokens) * (1 - float(rule.min_match_rate.value)) + 1e-12)
    return best if best.compared_tokens - best.matched_tokens <= allowed else None


def naive_onset(ids: list[int], period: int, rule: LoopRule) -> int:
    rate = rule.min_match_rate.value
    scores = [1 - rate if ids[at] == ids[at - period] else -rate for at in range(period, len(ids))]
    totals = [sum(scores[start:]) for start in range(len(scores) + 1)]
    return totals.index(max(totals))


@st.composite
def streams(draw: st.DrawFn) -> tuple[np.ndarray, LoopRule]:
    """A loop with noise near the rate, behind a head that is often too long for the tail to be clean."""
    tail = draw(st.integers(40, 400))
    rate = draw(st.sampled_from(["0.99", "0.9", "0.95", "0.75"]))
    rule = LoopRule(
        tail_tokens=tail,
        max_period_tokens=draw(st.integers(1, tail // 2)),
        min_match_rate=rate,
        min_budget_tokens=1,
    )
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    period, length = draw(st.integers(1, tail)), draw(st.integers(tail - 1, 2 * tail))
    loop = np.tile(random.integers(0, draw(st.sampled_from([2, 5, 1_000])), period), length // period + 1)[
        :length
    ]
    flips = round(float(1 - rule.min_match_rate.value) * tail * draw(st.sampled_from([0, 0.25, 0.5, 1, 2])))
    loop[random.integers(0, length, flips)] = 5_000 + np.arange(flips)
    head = random.integers(0, 1_000, draw(st.integers(0, tail)))
    return np.concatenate([head, loop]).astype(np.int32), rule


@settings(max_examples=300, deadline=None)
@given(streams())
def test_loop_rule_equals_the_naive_oracle(stream: tuple[np.ndarray, LoopRule]) -> None:
    ids, rule = stream
    assert find_loop(ids, rule) == oracle(ids.tolist(), rule)


@settings(max_examples=200, deadline=None)
@given(streams())
def test_a_near_miss_is_the_best_lag_or_nothing(stream: tuple[np.ndarray, LoopRule]) -> None:
    ids, rule = stream
    best, near = best_lag(ids, rule), nearest_lag(ids, rule)
    if find_loop(ids, rule):
        assert find_loop(ids, rule) == near == best
    if near is not None:
        assert near == best


@settings(max_examples=100, deadline=None)
@given(streams())
def test_onset_equals_the_naive_oracle(stream: tuple[np.ndarray, LoopRule]) -> None:
    ids, rule = stream
    loop = find_loop(ids, rule)
    if loop:
        onset = onset_token(ids, loop.period_tokens, rule)
        assert onset == naive_onset(ids.tolist(), loop.period_tokens, rule)


@st.composite
def registered_tails(draw: st.DrawFn) -> np.ndarray:
    """8,192-id tails of the registered rule whose mismatches at the planted period straddle the allowance."""
    period = draw(st.integers(1, 2_100))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ids = np.tile(random.integers(0, 248_000, period), 8_192 // period + 1)[:8_192]
    flips = (8_192 - period) // 200 + draw(st.integers(-4, 4))
    ids[random.choice(8_192, max(0, flips), replace=False)] = 300_000 + np.arange(max(0, flips))
    return ids.astype(np.int32)


@settings(max_examples=25, deadline=None)
@given(registered_tails())
def test_registered_rule_at_its_edge(ids: np.ndarray) -> None:
    rule = LoopRule(
        tail_tokens=8_192, max_period_tokens=2_048, min_match_rate="0.99", min_budget_tokens=16_384
    )
    rates = [(Fraction(int((ids[lag:] == ids[:-lag]).sum()), 8_192 - lag), -lag) for lag in range(1, 2_049)]
    rate, lag = max(rates)
    matched = rate * (8_192 + lag)
    passes = (8_192 + lag) - matched <= int((8_192 + lag) * 0.01 + 1e-12)
    assert find_loop(ids, rule) == (LagMatch(-lag, int(matched), 8_192 + lag) if passes else None)


def test_integer_and_registered_float_allowance_are_one() -> None:
    assert all(lags // 100 == int(lags * 0.01 + 1e-12) for lags in range(8_192))
