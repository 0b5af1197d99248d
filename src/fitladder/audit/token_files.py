"""Anyone's token lists: which of them end in a loop, outside any experiment?

Every row is taken as a boundary contact, so the question is only whether its tail repeats. No line and no
row is skipped: what cannot be read whole refuses the file, by path and line.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from fitladder.audit.periodicity import best_lag, find_loop, onset_token
from fitladder.canonical import parse_json
from fitladder.errors import InputRefused
from fitladder.records.settings import LoopRule

__all__ = ["ForeignRow", "ForeignSample", "audit_rows", "load_rows"]

TokenIds = npt.NDArray[np.int32]
PARQUET_MAGIC = b"PAR1"
GZIP_MAGIC = b"\x1f\x8b"
MAX_TOKEN_ID = 2**31 - 1
ONE_A_LINE = "write each row on a line of its own (`jq -c '.[]'`)"
MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\xef\xbb\xbf": "a byte order mark"}
NESTED = "name it with --column, dotted: outputs.*.token_ids"


@dataclass(frozen=True)
class ForeignRow:
    """One list of ids with the name it goes by; `where` is its place in messages."""

    id: str | int
    token_ids: TokenIds
    where: str


@dataclass(frozen=True)
class ForeignSample:
    """What was found in one row. `period_tokens` is None where no loop is claimed, and `reason` says why.

    `best_lag_tokens`, `matched_tokens` and `compared_tokens` are of the best-matching lag; None for a row
    shorter than the tail. `onset_token` counts from 0 within the row.
    """

    id: str | int
    tokens: int
    period_tokens: int | None
    best_lag_tokens: int | None
    matched_tokens: int | None
    compared_tokens: int | None
    onset_token: int | None
    reason: str | None

    @property
    def match_rate(self) -> float | None:
        """matched / compared, for printing; None for a row shorter than the tail."""
        if self.matched_tokens is None or self.compared_tokens is None:
            return None
        return self.matched_tokens / self.compared_tokens

    @property
    def tokens_after_onset(self) -> int | None:
        """Ids from the onset to the end of the row; None where no loop is claimed."""
        return None if self.onset_token is None else self.tokens - self.onset_token


def audit_rows(rows: Sequence[ForeignRow], rule: LoopRule) -> list[ForeignSample]:
    """Every row in order. The rule's `min_budget_tokens` plays no part here."""
    return [_audit_row(row, rule) for row in rows]


def _audit_row(row: ForeignRow, rule: LoopRule) -> ForeignSample:
    ids = row.token_ids
    loop = find_loop(ids, rule)
    best = loop or best_lag(ids, rule)
    if best is None:
        reason: str | None = f"{len(ids)} ids, shorter than the {rule.tail_tokens}-id tail"
    elif loop is None:
        reason = f"unresolved: no lag up to {rule.max_period_tokens} reaches {rule.min_match_rate}"
    else:
        reason = None
    return ForeignSample(
        id=row.id,
        tokens=len(ids),
        period_tokens=loop.period_tokens if loop else None,
        best_lag_tokens=best.period_tokens if best else None,
        matched_tokens=best.matched_tokens if best else None,
        compared_tokens=best.compared_tokens if best else None,
        onset_token=onset_token(ids, loop.period_tokens, rule) if loop else None,
        reason=reason,
    )


def load_rows(path: Path, column: str, id_column: str | None = None) -> list[ForeignRow]:
    """All rows of a JSONL or Parquet file, told apart by their first bytes, in file order.

    `column` names the id list, dotted into nested values: `outputs.0.token_ids`; a `*` stands for every
    element of a list and gives a row each, named `<id>#<place>`. Where `id_column` is left out and no row has
    an `id`, rows are named by line or row number from 1. Raises InputRefused with path and line on anything
    that is not whole.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputRefused(f"{path} cannot be read", got=error.strerror or error) from error
    if not data:
        raise InputRefused(f"{path} is empty", got="0 bytes", need="at least one row")
    if data[:2] == GZIP_MAGIC:
        raise InputRefused(f"{path} is compressed", got="gzip", need="JSONL or Parquet", do="gunzip it first")
    _check_encoding(data, path)
    name = id_column or "id"
    records = _parquet(data, path, column, name) if data[:4] == PARQUET_MAGIC else _lines(data, path)
    rows = list(_rows(records, column, name, is_asked=id_column is not None))
    _check_names(rows, path)
    return rows


def _check_encoding(data: bytes, path: Path) -> None:
    """Text as some tools save it is told by its name, not by its first byte."""
    for mark, name in MARKS.items():
        if data.startswith(mark):
            raise InputRefused(
                f"{path} is no plain UTF-8", got=name, need="UTF-8 without a mark", do="save it so again"
            )


def _lines(data: bytes, path: Path) -> Iterator[tuple[str, Any]]:
    """(where, record) of every line. A last line without its newline counts if it is whole."""
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, start=1):
        where = f"{path} line {number}"
        if not line.strip():
            raise InputRefused(f"{where} is blank", need="one JSON object a line, none skipped")
        record = parse_json(line, where=where)
        if not isinstance(record, dict):
            raise InputRefused(
                f"{where} is no object", got=type(record).__name__, need="a JSON object", do=ONE_A_LINE
            )
        yield where, record


def _parquet(data: bytes, path: Path, column: str, id_column: str) -> Iterator[tuple[str, Any]]:
    try:
        with pq.ParquetFile(pa.BufferReader(data)) as whole:
            names = whole.schema_arrow.names
            top = column.partition(".")[0]
            if top not in names:
                raise InputRefused(
                    f"{path} has no column {top!r}", need="one of " + ", ".join(names), do=NESTED
                )
            wanted = [top, *([id_column] if id_column in names and id_column != top else [])]
            table = whole.read(columns=wanted)
    except (pa.ArrowException, OSError) as error:
        raise InputRefused(f"{path} is not readable Parquet", got=str(error)[:200]) from error
    for number, record in enumerate(table.to_pylist(), start=1):
        yield f"{path} row {number}", record


def _rows(
    records: Iterator[tuple[str, Any]], column: str, id_column: str, *, is_asked: bool
) -> Iterator[ForeignRow]:
    named: bool | None = None
    for number, (where, record) in enumerate(records, start=1):
        if named is None:
            named = id_column in record
            if is_asked and not named:
                raise InputRefused(f"{where}: no {id_column!r}", need="what --id-column names")
        if named != (id_column in record):
            raise InputRefused(f"{where}: {id_column!r}", got="in some rows only", need="in all or none")
        name = record[id_column] if named else number
        if type(name) not in (str, int):
            raise InputRefused(f"{where}: {id_column!r}", got=repr(name)[:80], need="text or an integer")
        try:
            found = list(_dig(record, column.split("."), where, column))
        except InputRefused as error:
            lists = ", ".join(dict.fromkeys(_id_lists(record, "")))[:200]
            do = f"--column takes one of {lists}" if lists else "it has no list of ids; text is not audited"
            raise InputRefused(error.what, got=error.got, need=error.need, do=do) from error
        for place, value in enumerate(found):
            each = f"{name}#{place}" if "*" in column.split(".") else name
            yield ForeignRow(each, _token_ids(value, where, column), where)


def _dig(value: Any, parts: Sequence[str], where: str, column: str) -> Iterator[Any]:
    if not parts:
        yield value
        return
    part, rest = parts[0], parts[1:]
    if part == "*" and isinstance(value, list):
        for item in value:
            yield from _dig(item, rest, where, column)
    elif isinstance(value, dict) and part in value:
        yield from _dig(value[part], rest, where, column)
    elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
        yield from _dig(value[int(part)], rest, where, column)
    else:
        have = ", ".join(map(str, value)) if isinstance(value, dict) else type(value).__name__
        raise InputRefused(f"{where}: no {column!r}", got=have[:120], need=f"{part!r}")


def _id_lists(value: Any, path: str) -> Iterator[str]:
    """Where a record holds lists of integers, as `--column` takes it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _id_lists(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and all(type(item) is int for item in value):
        yield path
    elif isinstance(value, list):
        for item in value[:1]:
            yield from _id_lists(item, f"{path}.*")


def _token_ids(value: Any, where: str, column: str) -> TokenIds:
    if not isinstance(value, list):
        raise InputRefused(f"{where}: {column!r}", got=repr(value)[:80], need="a list of token ids")
    for item in value:
        if type(item) is not int or not 0 <= item <= MAX_TOKEN_ID:
            got = repr(item)[:80]
            raise InputRefused(f"{where}: {column!r} holds {got}", need="integers from 0 below 2**31")
    return np.array(value, dtype=np.int32)


def _alias(name: str | int) -> str:
    """What logs that keep a file a row would call it: `a/b` and `a_b` overwrite each other there."""
    return re.sub(r"[/\\]", "_", unicodedata.normalize("NFC", str(name)))


def _check_names(rows: Sequence[ForeignRow], path: Path) -> None:
    """No two rows may go by one name: as text, in any composition of accents, as a file name of a log."""
    seen: dict[str, ForeignRow] = {}
    for row in rows:
        other = seen.setdefault(_alias(row.id), row)
        if other is not row:
            raise InputRefused(
                f"{path}: one id twice",
                got=f"{other.id!r} at {other.where} and {row.id!r} at {row.where}",
                need="each row its own id",
            )
    if not rows:
        raise InputRefused(f"{path} has no rows", need="at least one")
