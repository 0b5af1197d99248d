"""Loops in anyone's token lists, outside any experiment: the tail rule, and runs anywhere in a row.

A row that was cut, or of which nothing else is known, is taken as a boundary contact, and the tail rule is
applied to it. No line and no row is skipped: what cannot be read whole refuses the file, by path and line.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fitladder.audit.lag_matches import best_lag_by_pairs
from fitladder.audit.loop_runs import LoopRun, burned_tokens, find_runs
from fitladder.audit.periodicity import LagMatch, find_loop, onset_token
from fitladder.audit.row_batches import read_batches
from fitladder.audit.row_ends import EndIds, EndKind, end_of_row
from fitladder.audit.row_sources import Source
from fitladder.audit.row_values import Columns, ForeignRow, some_rows_only
from fitladder.errors import InputRefused
from fitladder.records.settings import LoopRule

__all__ = ["ForeignRow", "ForeignSample", "RowNames", "audit_row", "audit_rows", "load_rows"]

TokenIds = npt.NDArray[np.int32]
SHORTEST_TAIL = 64  # no shorter tail is proposed for a short row


@dataclass(frozen=True)
class ForeignSample:
    """What was found in one row.

    By the tail rule: `period_tokens` is None where no loop is claimed, and `reason` says why.
    `best_lag_tokens`, `matched_tokens` and `compared_tokens` are of the best-matching lag; None for a row
    shorter than the tail, and for one that ended by itself. `onset_token` counts from 0 within the row.
    `tail_hint_tokens`: a shorter tail by which a row shorter than the tail loops, if there is one.

    Anywhere in the row: `runs`, by start. `tokens` leave out `padding_tokens`.
    """

    id: str | int
    tokens: int
    period_tokens: int | None
    best_lag_tokens: int | None
    matched_tokens: int | None
    compared_tokens: int | None
    onset_token: int | None
    reason: str | None
    judged_tokens: int
    end: EndKind
    end_by: str
    finish: str | None
    padding_tokens: int
    close_token: int | None
    tail_hint_tokens: int | None
    runs: tuple[LoopRun, ...]

    @property
    def match_rate(self) -> float | None:
        """matched / compared, for printing; None where nothing was compared."""
        if self.matched_tokens is None or self.compared_tokens is None:
            return None
        return self.matched_tokens / self.compared_tokens

    @property
    def tokens_after_onset(self) -> int | None:
        """Judged ids from the onset on; None where the tail rule claims no loop."""
        return None if self.onset_token is None else self.judged_tokens - self.onset_token

    @property
    def burned_tokens(self) -> int:
        """Ids in runs anywhere in the row, each counted once."""
        return burned_tokens(self.runs)

    def is_ended_by_close(self, run: LoopRun) -> bool:
        """Whether a forced close ended the run: it reaches the close, within one period."""
        return self.close_token is not None and abs(run.end_token - self.close_token) <= run.period_tokens


def audit_rows(rows: Iterable[ForeignRow], rule: LoopRule, ends: EndIds | None = None) -> list[ForeignSample]:
    """Every row in order. The rule's `min_budget_tokens` plays no part here."""
    return [audit_row(row, rule, ends or EndIds()) for row in rows]


def audit_row(row: ForeignRow, rule: LoopRule, ends: EndIds) -> ForeignSample:
    """One row: its end, the tail rule up to a forced close, and every run without the padding."""
    end = end_of_row(row.token_ids, row.finish, ends)
    runs = find_runs(row.token_ids[: end.tokens], rule)
    judged = row.token_ids[: end.judged_tokens]
    # a tail that passes is a window that passes: without a run there is none
    loop = find_loop(judged, rule) if runs and end.kind != "natural" else None
    best: LagMatch | None = None
    reason: str | None = None
    if end.kind == "natural":
        reason = f"ended by itself ({end.by}): the tail rule is for rows that were cut"
    elif len(judged) < rule.tail_tokens:
        reason = f"{len(judged)} ids, shorter than the {rule.tail_tokens}-id tail"
    else:
        best = loop or best_lag_by_pairs(judged, rule)
        if loop is None:
            reason = f"unresolved: no lag up to {rule.max_period_tokens} reaches {rule.min_match_rate}"
    is_short = end.kind != "natural" and best is None
    return ForeignSample(
        id=row.id,
        tokens=end.tokens,
        period_tokens=loop.period_tokens if loop else None,
        best_lag_tokens=best.period_tokens if best else None,
        matched_tokens=best.matched_tokens if best else None,
        compared_tokens=best.compared_tokens if best else None,
        onset_token=onset_token(judged, loop.period_tokens, rule) if loop else None,
        reason=reason,
        judged_tokens=end.judged_tokens,
        end=end.kind,
        end_by=end.by,
        finish=row.finish,
        padding_tokens=end.padding_tokens,
        close_token=end.close_token,
        tail_hint_tokens=_shorter_tail(judged, rule) if is_short else None,
        runs=runs,
    )


def _shorter_tail(ids: TokenIds, rule: LoopRule) -> int | None:
    """The longest power of two below the tail by which the row loops, at the rule's rate; None if none does.

    The longest period is the rule's, or half of that tail.
    """
    tail = 1 << (max(1, min(len(ids), rule.tail_tokens - 1)).bit_length() - 1)
    while tail >= SHORTEST_TAIL:
        periods = min(rule.max_period_tokens, tail // 2)
        shorter = rule.model_copy(update={"tail_tokens": tail, "max_period_tokens": periods})
        if find_loop(ids, shorter):
            return tail
        tail //= 2
    return None


def load_rows(path: Path, column: str, id_column: str | None = None) -> list[ForeignRow]:
    """All rows of one file in memory, in file order; for files that are small against it.

    `column` names the id list, dotted into nested values: `outputs.0.token_ids`; a `*` stands for every
    element of a list and gives a row each, named `<id>#<place>`. Where `id_column` is left out and no row has
    an `id`, rows are named by line or row number from 1. Raises InputRefused with path and line on anything
    that is not whole.
    """
    columns = Columns(column, id_column)
    names, rows = RowNames(str(path), columns), []
    for batch in read_batches(Source(path, str(path)), columns):
        found, named = batch.rows(columns)
        names.check([(row.id, row.where) for row in found], named=named)
        rows.extend(found)
    names.check_any()
    return rows


class RowNames:
    """No two rows of one file go by one name: as text, in any composition of accents, as a log's file name.

    Holds one entry a row and no ids.
    """

    def __init__(self, label: str, columns: Columns) -> None:
        self.label, self.columns = label, columns
        self.named: bool | None = None
        self.count = 0
        self.seen: dict[str, tuple[str | int, str]] = {}

    def check(self, names: Sequence[tuple[str | int, str]], *, named: bool) -> None:
        """Take (name, place) of the next rows. Raises InputRefused on a name taken, or in some rows only."""
        if names and self.named is not None and named != self.named:
            raise some_rows_only(names[0][1], self.columns)
        self.named = named
        self.count += len(names)
        if not named and "*" not in self.columns.token_ids.split("."):
            return  # numbers of lines or rows
        for name, where in names:
            other, place = self.seen.setdefault(_alias(name), (name, where))
            if place != where or other is not name:
                raise InputRefused(
                    f"{self.label}: one id twice",
                    got=f"{other!r} at {place} and {name!r} at {where}",
                    need="each row its own id",
                )

    def check_any(self) -> None:
        """Raises InputRefused where the file had no row."""
        if not self.count:
            raise InputRefused(f"{self.label} has no rows", need="at least one")


def _alias(name: str | int) -> str:
    """What logs that keep a file a row would call it: `a/b` and `a_b` overwrite each other there."""
    return re.sub(r"[/\\]", "_", unicodedata.normalize("NFC", str(name)))
