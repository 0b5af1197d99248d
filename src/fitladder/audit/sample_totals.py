"""Counts over the samples of a file audit, each with its denominator; one sample at a time, nothing kept."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from fitladder.audit.row_ends import EndKind
from fitladder.audit.token_files import ForeignSample

__all__ = ["KINDS", "KindTotals", "SampleTotals"]

KINDS: tuple[EndKind, ...] = ("cut", "forced close", "natural", "other")


@dataclass
class KindTotals:
    """Rows that ended in one way. The tail rule judges all kinds but `natural`, and leaves that at 0."""

    rows: int = 0
    tokens: int = 0
    loops: int = 0
    unresolved: int = 0
    shorter_than_the_tail: int = 0
    rows_with_runs: int = 0


@dataclass
class SampleTotals:
    """Totals of all rows so far; `by_kind` adds up to them."""

    by_kind: dict[EndKind, KindTotals] = field(default_factory=lambda: {kind: KindTotals() for kind in KINDS})
    tokens_after_onset: int = 0
    padded_rows: int = 0
    padding_tokens: int = 0
    runs: int = 0
    runs_ended_by_close: int = 0
    burned_tokens: int = 0
    tail_hints: Counter[int] = field(default_factory=Counter)

    def add(self, samples: Iterable[ForeignSample]) -> None:
        """Count further samples in."""
        for sample in samples:
            kind = self.by_kind[sample.end]
            kind.rows += 1
            kind.tokens += sample.tokens
            kind.rows_with_runs += bool(sample.runs)
            if sample.period_tokens is not None:
                kind.loops += 1
                self.tokens_after_onset += sample.tokens_after_onset or 0
            elif sample.end != "natural":
                kind.unresolved += sample.match_rate is not None
                kind.shorter_than_the_tail += sample.match_rate is None
            self.padded_rows += sample.padding_tokens > 0
            self.padding_tokens += sample.padding_tokens
            self.runs += len(sample.runs)
            self.runs_ended_by_close += sum(sample.is_ended_by_close(run) for run in sample.runs)
            self.burned_tokens += sample.burned_tokens
            if sample.tail_hint_tokens is not None:
                self.tail_hints[sample.tail_hint_tokens] += 1

    def all_of(self, name: str) -> int:
        """One count of `KindTotals`, over every kind."""
        return sum(getattr(kind, name) for kind in self.by_kind.values())

    @property
    def judged_rows(self) -> int:
        """Rows that the tail rule is for: the denominator of loops, unresolved and short rows."""
        return self.all_of("rows") - self.by_kind["natural"].rows

    @property
    def tail_hint_tokens(self) -> int | None:
        """The shorter tail by which most short rows loop, the longest on a tie; None without such a row."""
        if not self.tail_hints:
            return None
        return max(self.tail_hints, key=lambda tail: (self.tail_hints[tail], tail))
