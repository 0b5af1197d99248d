"""How fast, and how sure? Tokens a second, ratios, and bootstrap intervals over repeats.

Repeats of one block are neighbours in time, so ratios are resampled block by block. With three repeats an
interval spans little more than the smallest and the largest: it shows spread, not certainty. Pure.
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
    """A figure over `repeats`; low and high are its central 95 % under resampling, None below 3 repeats."""

    value: float
    low: float | None
    high: float | None
    repeats: int


def significant(value: float) -> float:
    """Six significant digits: what is written must come out equal on every platform."""
    return float(f"{value:.6g}")


def mean_seconds(seconds: Sequence[float]) -> float:
    """Mean of at least one duration."""
    return sum(seconds) / len(seconds)


def speed_interval(tokens: int, seconds: Sequence[float], *, seed: str) -> Interval:
    """Tokens a second of runs that sampled `tokens` each: all tokens over all seconds."""
    values = np.array(seconds, dtype=float)
    return _interval(tokens / values.mean(), tokens / _resampled(values, seed).mean(axis=1), len(seconds))


def ratio_interval(upper: Sequence[float], lower: Sequence[float], *, seed: str) -> Interval:
    """Sum of `upper` over sum of `lower`, both in block order: pairs are resampled together."""
    above, below = np.array(upper, dtype=float), np.array(lower, dtype=float)
    spread = _resampled(above, seed).sum(axis=1) / _resampled(below, seed).sum(axis=1)
    return _interval(above.sum() / below.sum(), spread, len(upper))


def _resampled(values: np.ndarray, seed: str) -> np.ndarray:
    """[resample, repeat]; equal seeds and lengths choose equal repeats."""
    count = len(values)
    return values[draw_integers(f"bootstrap {seed}", RESAMPLES * count, count).reshape(RESAMPLES, count)]


def _interval(value: float, spread: np.ndarray, repeats: int) -> Interval:
    if repeats < MIN_FOR_INTERVAL:
        return Interval(value=significant(value), low=None, high=None, repeats=repeats)
    low, high = (significant(float(bound)) for bound in np.quantile(spread, CENTRAL))
    return Interval(value=significant(value), low=low, high=high, repeats=repeats)
