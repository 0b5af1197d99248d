"""Sample rows as Parquet bytes, and reading them back column by column.

Token ids are int32 lists; no column holds text that a model said. The same rows under the same key always
give the same bytes. A reader gets bytes that somebody has already hashed, never a path.
"""

import io
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from fitladder.canonical import canonical_bytes, parse_json, parse_model
from fitladder.errors import BundleError, BundleTampered
from fitladder.files.escaped_text import escape_text, unescape_text
from fitladder.records.bundle_key import BundleKey
from fitladder.records.sample import SampleRow, TokenIds

__all__ = ["COLUMNS", "ROW_GROUP_ROWS", "SampleTable", "read_columns", "render_samples"]

_IDS = pa.list_(pa.field("element", pa.int32(), nullable=False))
_TYPES: dict[str, tuple[pa.DataType, bool]] = {  # column: (type, may be null)
    "record_id": (pa.string(), False),
    "sample_index": (pa.int32(), False),
    "prompt_tokens": (pa.int32(), False),
    "stage1_seed": (pa.int64(), False),
    "stage1_token_ids": (_IDS, False),
    "stage1_trimmed_tokens": (pa.int32(), False),
    "stage1_finish_reason": (pa.string(), False),
    "stage1_stop_reason": (pa.string(), True),
    "thinking_tokens": (pa.int32(), False),
    "natural_close": (pa.bool_(), False),
    "eos_inside_thinking": (pa.bool_(), False),
    "forced_close": (pa.bool_(), False),
    "answer_restart": (pa.bool_(), False),
    "injected_tokens": (pa.int32(), False),
    "stage2_seed": (pa.int64(), True),
    "stage2_prompt_tokens": (pa.int32(), False),
    "stage2_token_ids": (_IDS, False),
    "stage2_trimmed_tokens": (pa.int32(), False),
    "stage2_finish_reason": (pa.string(), True),
    "stage2_stop_reason": (pa.string(), True),
    "answer_tokens": (pa.int32(), False),
}
COLUMNS = tuple(_TYPES)
_SCHEMA = pa.schema([pa.field(name, kind, nullable=null) for name, (kind, null) in _TYPES.items()])
_KEY = b"fitladder.key"
_VERSION = (b"fitladder.samples", b"1")
_TOKEN_LEAVES = [f"{name}.list.element" for name, (kind, _) in _TYPES.items() if kind is _IDS]

# Measured on 48 x 49,152 ids, 37 rows looping / all random: byte-stream-split + zstd 3.29 / 5.50 MB against
# 4.08 / 6.78 MB plain + zstd and 3.83 / 5.73 MB delta-packed + zstd. Several row groups let threads decode.
ROW_GROUP_ROWS = 24
_ZSTD_LEVEL = 3
_DECODERS = min(4, os.cpu_count() or 1)


def render_samples(rows: Sequence[SampleRow], key: BundleKey) -> bytes:
    """Parquet bytes of the rows, in their order, naming the key. Raises BundleError on a value with no place.

    Ids must be one-dimensional int32 arrays; counts fit int32, seeds int64.
    """
    columns = [_column(name, [getattr(row, name) for row in rows]) for name in COLUMNS]
    table = pa.Table.from_arrays(columns, schema=_SCHEMA)
    out = io.BytesIO()
    with pq.ParquetWriter(
        out,
        _SCHEMA,
        version="2.6",
        data_page_version="1.0",
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        use_dictionary=False,
        column_encoding=dict.fromkeys(_TOKEN_LEAVES, "BYTE_STREAM_SPLIT"),
        data_page_size=1 << 20,
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        writer.add_key_value_metadata({_VERSION[0]: _VERSION[1], _KEY: canonical_bytes(key)})
    return out.getvalue()


def _column(name: str, values: list[Any]) -> pa.Array:
    kind, nullable = _TYPES[name]
    if kind is _IDS:
        return _id_lists(name, values)
    wanted: tuple[type, ...]
    if pa.types.is_string(kind):
        wanted, values = (str,), [escape_text(v) if isinstance(v, str) else v for v in values]
    elif pa.types.is_boolean(kind):
        wanted = (bool,)
    else:
        wanted = (int,)
    for value in values:
        if type(value) not in wanted and not (nullable and value is None):
            raise BundleError(f"sample column {name}", got=repr(value)[:80], need=wanted[0].__name__)
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, OverflowError) as failure:
        raise BundleError(f"sample column {name}", got=failure, need=str(kind)) from failure


def _id_lists(name: str, lists: list[Any]) -> pa.Array:
    for ids in lists:
        if not isinstance(ids, np.ndarray) or ids.dtype != np.int32 or ids.ndim != 1:
            raise BundleError(f"sample column {name}", got=repr(ids)[:80], need="a 1-d int32 array")
    values = np.concatenate([*lists, np.empty(0, np.int32)])
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(ids) for ids in lists], out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise BundleError(f"sample column {name}", got=f"{offsets[-1]} ids", need="at most 2^31 - 1 a bundle")
    if values.size and values.min() < 0:
        raise BundleError(f"sample column {name}", got=int(values.min()), need="token ids from 0 up")
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values), type=_IDS)


@dataclass(frozen=True)
class SampleTable:
    """Some columns of a bundle's samples, decoded from verified bytes. Row order is file order."""

    key: BundleKey
    table: Any  # pyarrow.Table; rows in one or several chunks

    @property
    def rows(self) -> int:
        """How many rows."""
        return int(self.table.num_rows)

    def select(self, names: Sequence[str]) -> "SampleTable":
        """The same rows with these columns only. Raises BundleError on a name that is none."""
        _check_names(names)
        return SampleTable(self.key, self.table.select(list(names)))

    def lengths(self, name: str) -> npt.NDArray[np.int64]:
        """How many ids each row has."""
        parts = [np.diff(chunk.offsets.to_numpy()) for chunk in self.table.column(name).chunks]
        return np.concatenate([*parts, np.empty(0, np.int32)]).astype(np.int64)

    def token_lists(self, name: str) -> list[TokenIds]:
        """Ids row by row, read-only views without a copy."""
        lists: list[TokenIds] = []
        for chunk in self.table.column(name).chunks:
            values = chunk.values.to_numpy()
            offsets = chunk.offsets.to_numpy().tolist()
            lists += [values[start:end] for start, end in pairwise(offsets)]
        return lists

    def integers(self, name: str) -> npt.NDArray[np.int64]:
        """A column of counts or seeds without nulls."""
        return np.asarray(self.table.column(name).to_numpy(), dtype=np.int64)

    def flags(self, name: str) -> npt.NDArray[np.bool_]:
        """A boolean column."""
        return np.asarray(self.table.column(name).to_numpy(), dtype=np.bool_)

    def texts(self, name: str) -> list[str | None]:
        """An id, finish-reason or stop-reason column, unescaped."""
        return [
            None if value is None else unescape_text(value) for value in self.table.column(name).to_pylist()
        ]

    def optional_integers(self, name: str) -> list[int | None]:
        """A column of seeds that may be null."""
        return list(self.table.column(name).to_pylist())


def read_columns(data: bytes, columns: Sequence[str] = COLUMNS, *, where: str = "samples") -> SampleTable:
    """The asked columns of a samples file's bytes. Raises BundleTampered naming `where`.

    Refused: what is not Parquet, a schema that differs in a name, type, order or nullability (a further
    column too), another format version, no key.
    """
    _check_names(columns)
    buffer = pa.py_buffer(data)
    try:
        with pq.ParquetFile(pa.BufferReader(buffer)) as whole:
            schema, groups = whole.schema_arrow, whole.num_row_groups
            footer = whole.metadata
        _check_schema(schema, where)
        key = _checked_key(footer.metadata or {}, where)
        with ThreadPoolExecutor(_DECODERS) as pool:
            decode = partial(_read_group, buffer, footer, list(columns))
            parts = list(pool.map(decode, range(groups)))
    except (pa.ArrowException, OSError, ValueError) as failure:
        if isinstance(failure, BundleError):
            raise
        raise BundleTampered(f"{where} is not readable Parquet", got=str(failure)[:200]) from failure
    empty = _SCHEMA.empty_table().select(list(columns))
    return SampleTable(key, pa.concat_tables([part.cast(empty.schema) for part in parts] or [empty]))


def _check_names(columns: Sequence[str]) -> None:
    unknown = [name for name in columns if name not in _TYPES]
    if unknown:
        raise BundleError(f"no such sample column: {unknown[0]!r}", need=", ".join(COLUMNS))


def _read_group(buffer: Any, footer: Any, columns: list[str], group: int) -> Any:
    with pq.ParquetFile(pa.BufferReader(buffer), metadata=footer) as one:
        return one.read_row_group(group, columns=columns, use_threads=False).select(columns)


def _check_schema(schema: Any, where: str) -> None:
    if schema.names != list(COLUMNS):
        extra = [name for name in schema.names if name not in _TYPES]
        raise BundleTampered(
            f"{where}: columns", got=f"{extra[0]!r} too" if extra else schema.names, need=", ".join(COLUMNS)
        )
    for found, need in zip(schema, _SCHEMA, strict=True):
        if not found.equals(need):
            raise BundleTampered(f"{where}: column {need.name}", got=found, need=need)


def _checked_key(metadata: dict[bytes, bytes], where: str) -> BundleKey:
    if metadata.get(_VERSION[0]) != _VERSION[1] or set(metadata) != {_VERSION[0], _KEY}:
        raise BundleTampered(
            f"{where}: file metadata", got=sorted(metadata), need="the key and format version 1"
        )
    plain = parse_json(metadata[_KEY], where=where, error=BundleTampered)
    return parse_model(BundleKey, plain, where=where, error=BundleTampered)
