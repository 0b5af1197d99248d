"""Loop rule: whether the last token ids of a sample repeat, at which period, and from where on.

The rule is the registered `loop_rule` (records/settings.py): the last `tail_tokens` ids are compared with the
ids `period` earlier, and a loop is claimed where at least `min_match_rate` of the positions are equal. All
decisions are made by integers. The search skips lags only where their mismatches provably exceed the allowed
ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from fitladder.records.settings import LoopRule

__all__ = ["LagMatch", "best_lag", "find_loop", "is_loop", "nearest_lag", "onset_token"]

TokenIds = npt.NDArray[np.int32]
_Count = TypeVar("_Count", int, npt.NDArray[np.int64])
NEAR = 2  # lags of up to this many times the allowed mismatches are still reported, as near misses
PERFECT_ENDS, PERFECT_TRIES = 4, 8
ONSET_STEP = 1_024  # ids looked at before the last mismatch; more only while an earlier onset could win
GRAM = 8  # ids under one anchor; anchors do not overlap, so one mismatch spoils one anchor at most


@dataclass(frozen=True)
class LagMatch:
    """Comparison of a tail with itself `period_tokens` earlier: equal positions of compared ones."""

    period_tokens: int
    matched_tokens: int
    compared_tokens: int

    def is_better_than(self, other: "LagMatch | None") -> bool:
        """True where the match rate is strictly greater; on a tie the lag found first, the smaller, stays."""
        return other is None or (
            self.matched_tokens * other.compared_tokens > other.matched_tokens * self.compared_tokens
        )


def is_loop(match: LagMatch | None, rule: LoopRule) -> bool:
    """True where the lag reaches the registered rate: mismatches <= floor(compared * (1 - rate))."""
    return match is not None and rule.min_match_rate.is_reached_by(
        match.matched_tokens, match.compared_tokens
    )


def find_loop(thinking_ids: TokenIds, rule: LoopRule) -> LagMatch | None:
    """The loop in which a sample's thinking ends: its best-matching lag, where that is a loop.

    Best is the greatest match rate over lags 1..max_period_tokens, the smallest lag on a tie.

    Args:
        thinking_ids: one dimension of integers, the whole thinking.

    Returns None where no lag passes, or where there are fewer ids than `rule.tail_tokens`. Raises TypeError
    on an array of another kind.
    """
    match = nearest_lag(thinking_ids, rule)
    return match if is_loop(match, rule) else None


def nearest_lag(thinking_ids: TokenIds, rule: LoopRule) -> LagMatch | None:
    """The best-matching lag with up to NEAR times the allowed mismatches, a loop or not; None without one."""
    tail = _tail(thinking_ids, rule)
    if tail is None:
        return None
    best = _perfect(tail, rule)
    if best is not None:
        return best
    for lag, least_mismatches in _candidates(tail, rule):
        compared = len(tail) - lag
        if not LagMatch(lag, compared - least_mismatches, compared).is_better_than(best):
            continue
        match = _compare(tail, lag)
        if compared - match.matched_tokens <= _reach(compared, rule) and match.is_better_than(best):
            best = match
            if match.matched_tokens == compared:
                break
    return best


def best_lag(thinking_ids: TokenIds, rule: LoopRule) -> LagMatch | None:
    """The best-matching lag whatever its rate; None where there are fewer ids than the tail.

    Compares every lag: the reference for `nearest_lag`, and what is printed of a row without a loop.
    """
    tail = _tail(thinking_ids, rule)
    if tail is None:
        return None
    best: LagMatch | None = None
    for lag in range(1, rule.max_period_tokens + 1):
        match = _compare(tail, lag)
        if match.is_better_than(best):
            best = match
            if match.matched_tokens == match.compared_tokens:
                break
    return best


def onset_token(thinking_ids: TokenIds, period_tokens: int, rule: LoopRule) -> int:
    """Index of the first thinking id of the loop that ends the sample, 0 for the first id.

    At the period, each position that equals the one a period earlier scores 1 - rate, each other one
    -rate; the loop is the suffix of greatest total score, the longest on a tie. So every stretch from the
    onset on reaches the registered rate, no earlier start adds more matches than the rate asks for, and
    scattered mismatches inside the loop do not move the onset. Scores are integers; time is linear.

    Args:
        period_tokens: of the loop, from `find_loop`.
    """
    ids = np.asarray(thinking_ids)
    rate = rule.min_match_rate.value
    gain, loss = rate.denominator - rate.numerator, rate.numerator
    missed = ids[period_tokens:] != ids[: len(ids) - period_tokens]
    last = missed.tobytes().rfind(b"\x01")
    back = ONSET_STEP
    while last >= 0:
        start = max(0, last - back)
        at = np.flatnonzero(missed[start:])
        score = at * gain - np.arange(len(at)) * (gain + loss) - loss  # just behind each mismatch
        least = int(np.argmin(score))
        # What lies before `start` can add at most `start` matches: below that, no earlier onset wins.
        if start == 0 or score[least] < -start * gain:
            return start + int(at[least]) + 1 if score[least] < 0 else 0
        back *= 4
    return 0


def _tail(thinking_ids: TokenIds, rule: LoopRule) -> TokenIds | None:
    ids = np.asarray(thinking_ids)
    if ids.ndim != 1 or (len(ids) and ids.dtype.kind not in "iu"):
        raise TypeError(f"got {ids.ndim} dimensions of {ids.dtype}, need one of integer ids")
    return ids[-rule.tail_tokens :] if len(ids) >= rule.tail_tokens else None


def _reach(compared: _Count, rule: LoopRule) -> _Count:
    """Most mismatches of a near miss: floor(NEAR * compared * (1 - rate)), of one count or of many."""
    rate = rule.min_match_rate.value
    return compared * (NEAR * (rate.denominator - rate.numerator)) // rate.denominator


def _compare(tail: TokenIds, lag: int) -> LagMatch:
    compared = len(tail) - lag
    return LagMatch(lag, int(np.count_nonzero(tail[lag:] == tail[:compared])), compared)


def _perfect(tail: TokenIds, rule: LoopRule) -> LagMatch | None:
    """The smallest lag without a mismatch, if soon found: most loops are perfect, and that ends the search.

    Every such lag repeats the last ids; only the first few lags that do are compared in full.
    """
    lags = np.flatnonzero(tail[-1 - rule.max_period_tokens : -1][::-1] == tail[-1]) + 1
    for back in range(2, min(PERFECT_ENDS, len(tail) - rule.max_period_tokens) + 1):
        lags = lags[tail[len(tail) - back - lags] == tail[-back]]
    for lag in lags[:PERFECT_TRIES].tolist():
        match = _compare(tail, lag)
        if match.matched_tokens == match.compared_tokens:
            return match
    return None


def _candidates(tail: TokenIds, rule: LoopRule) -> Iterator[tuple[int, int]]:
    """(lag, least mismatches) for each lag that may be within reach, ascending.

    Anchors are disjoint runs of `GRAM` ids, compared by hash with the runs of every lag: a run whose hash
    differs holds at least one mismatch. Equal hashes prove nothing and exclude nothing.
    """
    lags = rule.max_period_tokens
    reach = _reach(len(tail) - 1, rule)
    anchors = min((len(tail) - lags) // GRAM, reach + max(10, reach // 32))
    if anchors <= reach:
        return ((lag, 0) for lag in range(1, lags + 1))
    hashes = _gram_hashes(tail)
    step = (len(tail) - lags) // anchors
    at = lags + step * np.arange(anchors)
    earlier = sliding_window_view(hashes, lags)[at[0] - lags : at[-1] - lags + 1 : step]
    same = (earlier == hashes[at, None]).view(np.uint8)  # (anchors, lags); column j is lag lags - j
    matched = same.sum(axis=0, dtype=np.uint8 if anchors <= np.iinfo(np.uint8).max else np.int64)
    missed = anchors - matched[::-1].astype(np.int64)
    within = np.flatnonzero(missed <= _reach(len(tail) - np.arange(1, lags + 1), rule))
    return zip((within + 1).tolist(), missed[within].tolist(), strict=True)


def _gram_hashes(tail: TokenIds) -> npt.NDArray[np.uint8]:
    """An 8-bit hash of each run of `GRAM` consecutive ids; equal runs have equal hashes.

    So few bits let one pair in 256 look equal that is not: that only leaves a few more lags to compare.
    """
    hashes = tail.astype(np.uint32) * np.uint32(0x9E3779B1)
    width = 1
    while width < GRAM:
        hashes = (hashes[width:] ^ np.uint32(0x85EBCA6B)) + hashes[:-width] * np.uint32(0xC2B2AE35)
        width *= 2
    return (hashes >> np.uint32(24)).astype(np.uint8)
