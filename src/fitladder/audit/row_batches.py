"""Batches of rows from one file: JSON Lines, indented JSON documents and Parquet, each in bounded memory.

A batch is plain data that another process can turn into rows: lines not yet parsed, records, or one array of
ids with its lengths. What a batch holds is bounded by BATCH_BYTES or BATCH_IDS, or by one row if that is
larger; a document is held whole and so refused above MAX_DOCUMENT_BYTES.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fitladder.audit.row_sources import PARQUET_MAGIC, Source, open_source
from fitladder.audit.row_values import (
    FINISH_NAMES,
    MAX_TOKEN_ID,
    Columns,
    ForeignRow,
    check_name,
    finish_word,
    rows_of_records,
)
from fitladder.canonical import parse_json
from fitladder.errors import InputRefused

__all__ = ["IdBatch", "LineBatch", "RecordBatch", "RowBatch", "read_batches"]

BATCH_BYTES = 4 << 20
BATCH_LINES = 4_096
BATCH_IDS = 1 << 20
BATCH_ROWS = 1_024
MAX_DOCUMENT_BYTES = 64 << 20
ONE_A_LINE = "write each row on a line of its own (`jq -c '.[]'`)"
NESTED = "name it with --column, dotted: outputs.*.token_ids"
MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\xef\xbb\xbf": "a byte order mark"}


@dataclass(frozen=True)
class LineBatch:
    """Lines of a JSON Lines file as they were read; `first_number` counts lines from 1."""

    label: str
    first_number: int
    lines: list[bytes]

    def rows(self, columns: Columns) -> tuple[list[ForeignRow], bool]:
        """Parsed rows, and whether the records name them. Raises InputRefused by path and line."""
        records = []
        for number, line in enumerate(self.lines, start=self.first_number):
            where = f"{self.label} line {number}"
            if not line.strip():
                raise InputRefused(f"{where} is blank", need="one JSON object a line, none skipped")
            record = parse_json(line.removesuffix(b"\n"), where=where)
            if not isinstance(record, dict):
                got = type(record).__name__
                raise InputRefused(f"{where} is no object", got=got, need="a JSON object", do=ONE_A_LINE)
            records.append((where, record))
        return rows_of_records(records, self.first_number, columns)


@dataclass(frozen=True)
class RecordBatch:
    """Records of a document or of a Parquet file, each with its place in messages."""

    label: str
    first_number: int
    records: list[tuple[str, Any]]

    def rows(self, columns: Columns) -> tuple[list[ForeignRow], bool]:
        """Rows, and whether the records name them. Raises InputRefused by path and row."""
        return rows_of_records(self.records, self.first_number, columns)


@dataclass(frozen=True)
class IdBatch:
    """Rows of a Parquet file whose ids are a top-level list of integers: all ids, and where each row ends."""

    label: str
    first_number: int
    token_ids: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int64]
    names: list[Any] | None
    finishes: list[Any] | None
    finish_name: str

    def rows(self, columns: Columns) -> tuple[list[ForeignRow], bool]:
        """Rows as views of the batch, and whether the file names them. Raises InputRefused by row."""
        rows = []
        for place, (begin, end) in enumerate(pairwise([0, *self.ends.tolist()])):
            number = self.first_number + place
            where = f"{self.label} row {number}"
            name = number if self.names is None else check_name(self.names[place], where, columns)
            word = None if self.finishes is None else self.finishes[place]
            finish = finish_word(word, where, self.finish_name)
            rows.append(ForeignRow(name, self.token_ids[begin:end], where, finish))
        return rows, self.names is not None


RowBatch = LineBatch | RecordBatch | IdBatch


def read_batches(source: Source, columns: Columns) -> Iterator[RowBatch]:
    """Every row of one file, in order, at least one. Formats are told apart by content, not by name.

    Raises InputRefused naming path, and line or row, on anything that is not whole.
    """
    with open_source(source) as (stream, head):
        if not head:
            raise InputRefused(f"{source.label} is empty", got="0 bytes", need="at least one row")
        for mark, name in MARKS.items():
            if head.startswith(mark):
                need = "UTF-8 without a mark"
                raise InputRefused(
                    f"{source.label} is no plain UTF-8", got=name, need=need, do="save it so again"
                )
        if head == PARQUET_MAGIC:
            yield from _parquet(stream, source.label, columns)
        else:
            yield from _text(stream, source.label)


def _text(stream: IO[bytes], label: str) -> Iterator[RowBatch]:
    """Lines, or a document where the first of several lines is a bracket alone."""
    first = stream.readline()
    second = stream.readline() if first.strip() in (b"{", b"[") else b""
    if second:
        rest = stream.read(MAX_DOCUMENT_BYTES)
        if stream.read(1):
            need = f"at most {MAX_DOCUMENT_BYTES >> 20} MiB, or JSON Lines"
            raise InputRefused(f"{label} is one large JSON document", need=need, do=ONE_A_LINE)
        yield _document(parse_json(first + second + rest, where=label), label)
        return
    number, lines, held = 1, [first], len(first)
    while line := stream.readline():
        if held >= BATCH_BYTES or len(lines) >= BATCH_LINES:
            yield LineBatch(label, number, lines)
            number, lines, held = number + len(lines), [], 0
        lines.append(line)
        held += len(line)
    yield LineBatch(label, number, lines)


def _document(document: Any, label: str) -> RecordBatch:
    """A list of records, an Inspect log (its `samples`, named by id and epoch), or one record."""
    records, what = [document], "record"
    if isinstance(document, list):
        records, what = document, "element"
    elif isinstance(document.get("samples"), list):
        records, what = [_with_epoch(sample) for sample in document["samples"]], "sample"
    pairs = [(f"{label} {what} {number}", record) for number, record in enumerate(records, start=1)]
    for where, record in pairs:
        if not isinstance(record, dict):
            raise InputRefused(f"{where} is no object", got=type(record).__name__, need="a JSON object")
    if not pairs:
        raise InputRefused(f"{label} has no rows", need="at least one")
    return RecordBatch(label, 1, pairs)


def _with_epoch(sample: Any) -> Any:
    """An Inspect sample under a name of its own: several epochs run the same sample id."""
    if isinstance(sample, dict) and type(sample.get("epoch")) is int and "id" in sample:
        return {**sample, "id": f"{sample['id']}#epoch{sample['epoch']}"}
    return sample


def _parquet(stream: IO[bytes], label: str, columns: Columns) -> Iterator[RowBatch]:
    try:
        with pq.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False) as whole:
            wanted = _wanted(whole.schema_arrow.names, label, columns)
            if whole.metadata.num_rows == 0:
                raise InputRefused(f"{label} has no rows", need="at least one")
            number = 1
            for group in range(whole.metadata.num_row_groups):
                size = _batch_rows(whole.metadata.row_group(group), wanted[0])
                for batch in whole.iter_batches(size, row_groups=[group], columns=wanted, use_threads=False):
                    yield _batch(batch, label, number, columns)
                    number += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise InputRefused(f"{label} is not readable Parquet", got=str(error)[:200]) from error


def _wanted(names: list[str], label: str, columns: Columns) -> list[str]:
    """The top-level columns to read, the ids' first. Raises InputRefused on a named one that is not there."""
    top = columns.token_ids.partition(".")[0]
    if top not in names:
        raise InputRefused(f"{label} has no column {top!r}", need="one of " + ", ".join(names), do=NESTED)
    others = [columns.id_name]
    if columns.finish is not None:
        others.append(columns.finish.partition(".")[0])
        if others[-1] not in names:
            need = "one of " + ", ".join(names)
            raise InputRefused(
                f"{label} has no column {others[-1]!r}", need=need, do="correct --finish-column"
            )
    elif "." not in columns.token_ids:
        others.extend(FINISH_NAMES)
    return [top, *(name for name in dict.fromkeys(others) if name in names and name != top)]


def _batch_rows(group: Any, top: str) -> int:
    """Rows a batch: so many that their ids, on average, are BATCH_IDS."""
    chunks = [group.column(place) for place in range(group.num_columns)]
    values = max(
        (chunk.num_values for chunk in chunks if chunk.path_in_schema.split(".")[0] == top), default=0
    )
    return max(1, min(BATCH_ROWS, int(BATCH_IDS * group.num_rows // max(1, values))))


def _batch(batch: pa.RecordBatch, label: str, number: int, columns: Columns) -> RowBatch:
    is_flat = "." not in columns.token_ids and (columns.finish is None or "." not in columns.finish)
    ids = batch.column(columns.token_ids) if is_flat else None
    if ids is not None and _is_id_list(ids) and (columns.id is None or columns.id in batch.schema.names):
        lengths = pc.list_value_length(ids).to_numpy(zero_copy_only=False)
        values = ids.flatten()
        low_high = pc.min_max(values).as_py() if len(values) else {"min": 0, "max": 0}
        if low_high["min"] >= 0 and low_high["max"] <= MAX_TOKEN_ID:
            finish = columns.finish or next((name for name in FINISH_NAMES if name in batch.schema.names), "")
            return IdBatch(
                label,
                number,
                values.cast(pa.int32()).to_numpy(zero_copy_only=False),
                np.cumsum(lengths, dtype=np.int64),
                batch.column(columns.id_name).to_pylist() if columns.id_name in batch.schema.names else None,
                batch.column(finish).to_pylist() if finish else None,
                finish,
            )
    pairs = [(f"{label} row {row}", record) for row, record in enumerate(batch.to_pylist(), start=number)]
    return RecordBatch(label, number, pairs)


def _is_id_list(ids: pa.Array) -> bool:
    """A list of integers a row, none of either missing."""
    kind = ids.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(
        is_list
        and pa.types.is_integer(kind.value_type)
        and not ids.null_count
        and not ids.flatten().null_count
    )
