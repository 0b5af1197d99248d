"""The best-matching lag of a tail from its pairs of equal ids: `best_lag`, fast where few ids repeat."""

import numpy as np
import numpy.typing as npt

from fitladder.audit.periodicity import LagMatch, best_lag
from fitladder.records.settings import LoopRule

__all__ = ["best_lag_by_pairs"]

TokenIds = npt.NDArray[np.int32]
MAX_PAIRS = 1 << 21  # beyond it comparing every lag is faster
MAX_TAIL = 1 << 25  # below it, unequal rates differ as 64-bit floats, and equal ones do not


def best_lag_by_pairs(thinking_ids: TokenIds, rule: LoopRule) -> LagMatch | None:
    """Exactly `best_lag(thinking_ids, rule)`: the greatest rate over all lags, the smallest lag on a tie."""
    length = rule.tail_tokens
    if len(thinking_ids) < length:
        return None
    tail = np.asarray(thinking_ids)[-length:]
    order = np.argsort(tail, kind="stable")
    ordered = tail[order]
    matched = np.zeros(rule.max_period_tokens + 1, np.int64)
    left, pairs, apart = np.arange(length - 1), 0, 1
    while len(left):
        left = left[ordered[left] == ordered[left + apart]]
        lags = order[left + apart] - order[left]
        is_near = lags <= rule.max_period_tokens
        left = left[is_near]
        matched += np.bincount(lags[is_near], minlength=len(matched))
        pairs, apart = pairs + len(left), apart + 1
        left = left[left + apart < length]
        if pairs > MAX_PAIRS or length > MAX_TAIL:
            return best_lag(thinking_ids, rule)
    compared = length - np.arange(1, len(matched))
    best = int(np.argmax(matched[1:] / compared))
    return LagMatch(best + 1, int(matched[best + 1]), int(compared[best]))
