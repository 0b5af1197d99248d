"""Tokens a second, ratios of seconds, and their percentile bootstrap intervals over repeats (Efron, 1979).

The runs of one repeat are close in time, so a ratio is resampled in pairs. With three repeats an interval
spans little more than the smallest and the largest value: it shows spread, not certainty. Pure.
"""

from collections.abc import Sequence

import numpy as np

from fitladder.frozen import Frozen
from fitladder.study.seeded_draw import draw_integers

__all__ = ["Interval", "mean_seconds", "ratio_interval", "significant", "speed_interval"]

RESAMPLES = 10_000
MIN_FOR_INTERVAL = 3
CENTRAL = (0.025, 0.975)


class Interval(Frozen):
    """A figure over repeats; low and high bound its central 95 % under resampling, None below 3 repeats."""

    value: float
    low: float | None
    high: float | None
    repeats: int


def significant(value: float) -> float:
    """Rounded to six significant digits, so that results have equal bytes on every platform."""
    return float(f"{value:.6g}")


def mean_seconds(seconds: Sequence[float]) -> float:
    """Mean of one or more durations in seconds."""
    return sum(seconds) / len(seconds)


def speed_interval(tokens: int, seconds: Sequence[float], *, seed: str) -> Interval:
    """Tokens a second over several runs: all tokens over all seconds.

    Args:
        tokens: sampled in each run.
        seconds: of each run.
        seed: text that seeds the resampling.
    """
    values = np.array(seconds, dtype=float)
    return _interval(tokens / values.mean(), tokens / _resampled(values, seed).mean(axis=1), len(seconds))


def ratio_interval(upper: Sequence[float], lower: Sequence[float], *, seed: str) -> Interval:
    """Sum of `upper` over sum of `lower`; entries of one repeat share an index and are resampled together."""
    above, below = np.array(upper, dtype=float), np.array(lower, dtype=float)
    spread = _resampled(above, seed).sum(axis=1) / _resampled(below, seed).sum(axis=1)
    return _interval(above.sum() / below.sum(), spread, len(upper))


def _resampled(values: np.ndarray, seed: str) -> np.ndarray:
    """Values (RESAMPLES, repeats) drawn with replacement; equal seeds and lengths draw equal repeats."""
    count = len(values)
    return values[draw_integers(f"bootstrap {seed}", RESAMPLES * count, count).reshape(RESAMPLES, count)]


def _interval(value: float, spread: np.ndarray, repeats: int) -> Interval:
    if repeats < MIN_FOR_INTERVAL:
        return Interval(value=significant(value), low=None, high=None, repeats=repeats)
    low, high = (significant(float(bound)) for bound in np.quantile(spread, CENTRAL))
    return Interval(value=significant(value), low=low, high=high, repeats=repeats)
