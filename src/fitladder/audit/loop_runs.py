"""Periodic runs anywhere in a list of token ids, by the parameters of the registered tail rule.

The registered rule looks at the end of a row only (periodicity.py). Here the same test is applied to every
window of `tail_tokens` ids: at lag p a window passes if its `tail_tokens - p` compared positions hold at most
floor((tail_tokens - p) * (1 - rate)) mismatches. The search is exact: what it skips cannot pass.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from fitladder.records.settings import LoopRule

__all__ = ["LoopRun", "burned_tokens", "find_runs"]

TokenIds = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]
GRAM = 16  # most ids under one anchor
SPARE = 8  # anchors of a window that must be clean, at least, where its length leaves room
BLOCK = 255  # anchors whose matches are counted in 8 bits


@dataclass(frozen=True)
class LoopRun:
    """One maximal periodic run: ids `start_token` to `end_token` (exclusive) of a row.

    `matched_tokens` of `compared_tokens` positions equal the id one period earlier; the first period of the
    run is compared with nothing. The onset is `start_token`, the first id of the first cycle.
    """

    start_token: int
    end_token: int
    period_tokens: int
    matched_tokens: int
    compared_tokens: int

    @property
    def burned_tokens(self) -> int:
        """Ids of the run, its first cycle among them."""
        return self.end_token - self.start_token


def burned_tokens(runs: tuple[LoopRun, ...]) -> int:
    """Ids that lie in at least one of the runs, each counted once."""
    burned, end = 0, 0
    for run in sorted(runs, key=lambda run: run.start_token):
        burned += max(0, run.end_token - max(run.start_token, end))
        end = max(end, run.end_token)
    return burned


def find_runs(token_ids: TokenIds, rule: LoopRule) -> tuple[LoopRun, ...]:
    """Every maximal periodic run of a row, by start; empty for a row shorter than the rule's tail.

    At each lag, the positions covered by passing windows form stretches; a stretch gives one run, after its
    two ends are trimmed by score (1 - rate for a match, -rate for a mismatch) within the first and the last
    window, so that what precedes or follows a loop does not count as part of it. Lags are taken from small to
    large, and a stretch of which half or more lies in runs found before it is the same loop and dropped:
    multiples of a period are not reported.

    Cost for n ids, the longest period P and K lags compared in full: O(n * P / g + n * K) elementary steps in
    numpy, where g (62 for the registered rule) is the distance of the anchors that select lags. K is 0 for
    ids that do not repeat, one or a few a loop, and P at worst.
    """
    ids = np.ascontiguousarray(token_ids)
    if ids.ndim != 1 or (len(ids) and ids.dtype.kind not in "iu"):
        raise TypeError(f"got {ids.ndim} dimensions of {ids.dtype}, need one of integer ids")
    if len(ids) < rule.tail_tokens:
        return ()
    runs: list[LoopRun] = []
    kept: list[tuple[int, int]] = []
    lags = _Lags(ids, rule)
    for lag in lags:
        missed = ids[lag:] != ids[: len(ids) - lag]
        at = np.flatnonzero(missed)
        before = len(runs)
        for begin, end in _covered(at, len(missed), lag, rule):
            if 2 * _overlap(kept, begin + lag, end + lag) < end - begin:
                run = _trimmed(at, begin, end, lag, rule)
                runs.append(run)
                kept = _union([*kept, (run.start_token, run.end_token)])
        lags.narrow(kept, grown=len(runs) > before)
    return tuple(sorted(runs, key=lambda run: (run.start_token, run.period_tokens)))


def _allowed(compared: int, rule: LoopRule) -> int:
    rate = rule.min_match_rate.value
    return compared * (rate.denominator - rate.numerator) // rate.denominator


def _covered(at: Places, length: int, lag: int, rule: LoopRule) -> list[tuple[int, int]]:
    """Stretches of compared positions that passing windows cover; `at` are the mismatches among `length`.

    Between a mismatch and the one `allowed + 1` later lies a longest stretch that holds `allowed`; windows
    pass exactly inside such stretches that are long enough.
    """
    window = rule.tail_tokens - lag
    allowed = _allowed(window, rule)
    edges = np.concatenate(([-1], at, [length]))
    if len(edges) <= allowed + 1:
        return [(0, length)] if length >= window else []
    begins, ends = edges[: -allowed - 1] + 1, edges[allowed + 1 :]
    passing = np.flatnonzero(ends - begins >= window)
    return _union(zip(begins[passing].tolist(), ends[passing].tolist(), strict=True))


def _union(parts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Half-open intervals, those that overlap or touch as one, ascending."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(parts):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def _overlap(parts: list[tuple[int, int]], begin: int, end: int) -> int:
    return sum(max(0, min(end, last) - max(begin, first)) for first, last in parts)


def _trimmed(at: Places, begin: int, end: int, lag: int, rule: LoopRule) -> LoopRun:
    """One covered stretch as a run of the row, without what only fills up its first and its last window.

    The start has the least score of all places in the first window, the first on a tie; the end has the
    greatest in the last window, the last on a tie. Where these cross, the part of greatest score is taken,
    the longest on a tie, then the first.
    """
    rate = rule.min_match_rate.value
    gain, loss = rate.denominator - rate.numerator, rate.numerator
    inside = at[np.searchsorted(at, begin) : np.searchsorted(at, end)]
    count = np.arange(len(inside) + 1)
    starts, ends = np.concatenate(([begin], inside + 1)), np.concatenate((inside, [end]))
    # the score of begin..x is gain * (x - begin) less (gain + loss) for each mismatch before x
    at_starts = gain * (starts - begin) - (gain + loss) * count
    at_ends = gain * (ends - begin) - (gain + loss) * count
    window = rule.tail_tokens - lag
    heads = int(np.searchsorted(starts, begin + window, side="right"))
    tails = int(np.searchsorted(ends, end - window))
    start = int(starts[np.argmin(at_starts[:heads])])
    stop = int(ends[len(ends) - 1 - int(np.argmax(at_ends[tails:][::-1]))])
    if start >= stop:
        least = np.minimum.accumulate(at_starts)
        is_new = np.concatenate(([True], at_starts[1:] < least[:-1]))
        first = starts[np.maximum.accumulate(np.where(is_new, count, 0))]
        score = at_ends - least
        best = int(np.argmax(np.where(score == score.max(), ends - first, -1)))
        start, stop = int(first[best]), int(ends[best])
    mismatches = int(np.searchsorted(inside, stop) - np.searchsorted(inside, start))
    return LoopRun(start, stop + lag, lag, stop - start - mismatches, stop - start)


class _Lags:
    """The lags at which some window may pass, ascending; those that cannot matter any more are dropped.

    Anchors are every `step` ids; each begins a gram of at most `step` ids, so that a mismatch spoils one
    anchor at most. Of the `anchors` that lie inside every window at least `least` must be clean, or it holds
    too many mismatches. Grams are compared by 16-bit hashes: equal grams have equal hashes, so nothing clean
    is missed. Where the rule allows so many mismatches that no anchor need be clean, every lag is compared.
    """

    def __init__(self, ids: TokenIds, rule: LoopRule) -> None:
        self.ids = ids
        self.longest = min(rule.max_period_tokens, len(ids) - 1)
        self.allowed = _allowed(rule.tail_tokens - 1, rule)
        shortest = rule.tail_tokens - rule.max_period_tokens  # compared positions of a window, at least
        step = max(1, shortest // (self.allowed + 1 + max(SPARE, self.allowed // 5)))
        gram = 1
        while gram * 2 <= min(step, GRAM):
            gram *= 2
        self.anchors = (shortest - gram + 1) // step
        self.least = self.anchors - self.allowed
        self.strip = min(shortest // 8, 2 * (self.allowed + 1))
        self.waiting: Places = np.arange(1, self.longest + 1)
        self.is_refined = self.least <= 0
        if self.least > 0:
            self._select(step, gram)

    def __iter__(self) -> Iterator[int]:
        while len(self.waiting):
            lag = int(self.waiting[0])
            self.waiting = self.waiting[1:]
            yield lag

    def narrow(self, kept: list[tuple[int, int]], *, grown: bool) -> None:
        """Drop lags after one was compared: by what `kept` has `grown` to, or by anchors, once."""
        if grown:
            self._drop_those_within(kept)
        elif not self.is_refined and len(self.waiting):
            self.is_refined = True
            self.waiting = self.waiting[self._most_clean(0, len(self.at)) >= self.least]

    def _drop_those_within(self, kept: list[tuple[int, int]]) -> None:
        """Drop lags whose passing windows all lie in `kept` intervals, or reach out by less than a strip.

        A window that reaches out further holds a whole strip next to an interval, and too many mismatches
        where that strip alone has them; one wholly outside needs `least` clean anchors there. A strip is an
        eighth of a window or less, so half or more of what the other windows cover is kept already. Intervals
        of less than eight strips do not count.
        """
        large = [part for part in kept if part[1] - part[0] >= 8 * self.strip]
        if self.least <= 0 or self.strip <= self.allowed or not large:
            return
        still = np.zeros(len(self.waiting), np.bool_)
        edges = [0, *(edge for part in large for edge in part), len(self.ids)]
        for end, begin in zip(edges[::2], edges[1::2], strict=True):  # the gaps between the intervals
            first, last = np.searchsorted(self.at, (end, begin)).tolist()
            done = self._most_clean(first, last) < self.least
            if begin - end >= self.strip:
                if end > 0:
                    done &= self._mismatches(end) > self.allowed
                if begin < len(self.ids):
                    strip = begin - self.strip
                    done &= (self._mismatches(strip) > self.allowed) | (self.waiting > strip)
            still |= ~done
        self.waiting = self.waiting[still]

    def _mismatches(self, first: int) -> Places:
        """Mismatches of the strip that begins at `first`, one count for each waiting lag up to `first`."""
        windows = sliding_window_view(self.ids, self.strip)
        earlier = windows[np.maximum(first - self.waiting, 0)]
        return np.asarray((earlier != windows[first]).sum(axis=1))

    def _select(self, step: int, gram: int) -> None:
        """Wait only for lags that have `least` clean anchors in the whole row."""
        self.hashes = _gram_hashes(self.ids, gram)
        self.at = np.arange(0, len(self.hashes), step)
        self.padded = np.concatenate((np.zeros(self.longest, np.uint16), self.hashes))
        # row a, column j: the gram that begins `longest - j` ids before the gram of anchor a
        earlier = sliding_window_view(self.padded, self.longest)[: len(self.hashes) : step]
        clean = np.zeros(self.longest, np.int64)
        for first in range(0, len(self.at), BLOCK):
            part = slice(first, first + BLOCK)
            same = earlier[part] == self.hashes[self.at[part], None]
            clean += same.view(np.uint8).sum(axis=0, dtype=np.uint8)
        self.waiting = np.flatnonzero(clean[::-1] >= self.least) + 1

    def _most_clean(self, first: int, last: int) -> Places:
        """Most clean anchors of any `anchors` in a row from anchor `first` to `last`, a waiting lag."""
        if last - first < self.least:
            return np.zeros(len(self.waiting), np.int64)
        at = self.at[first:last, None]
        total = np.zeros((len(at) + 1, len(self.waiting)), np.int32)
        np.cumsum(self.padded[at + (self.longest - self.waiting)] == self.hashes[at], axis=0, out=total[1:])
        width = min(self.anchors, len(at))
        return np.asarray((total[width:] - total[: len(total) - width]).max(axis=0))


def _gram_hashes(ids: TokenIds, gram: int) -> npt.NDArray[np.uint16]:
    """A 16-bit hash of each `gram` consecutive ids (a power of two), by where they begin."""
    hashes = ids.astype(np.uint32) * np.uint32(0x9E3779B1)
    width = 1
    while width < gram:
        hashes = (hashes[width:] ^ np.uint32(0x85EBCA6B)) + hashes[:-width] * np.uint32(0xC2B2AE35)
        width *= 2
    return (hashes >> np.uint32(16)).astype(np.uint16)
