"""Parquet samples: the same rows give the same bytes, and only the registered columns can be read."""

import dataclasses
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import bundles as make
from support.sample_rows import read_rows

from fitladder.errors import BundleError, BundleTampered
from fitladder.records.sample import SampleRow
from fitladder.sampling.parquet import COLUMNS, read_columns, render_samples

KEY = make.key(64, "base")


@pytest.fixture(scope="module")
def rows() -> list[SampleRow]:
    of = make.experiment(records=9)
    return make.rows(make.preflight(of, KEY, root_id=make.sha("root"), sequence=0))


def same(left: SampleRow, right: SampleRow) -> bool:
    return all(
        np.array_equal(getattr(left, field.name), getattr(right, field.name))
        if field.name.endswith("token_ids")
        else getattr(left, field.name) == getattr(right, field.name)
        for field in dataclasses.fields(SampleRow)
    )


def test_rows_come_back_in_order_over_several_row_groups(rows: list[SampleRow]) -> None:
    data = render_samples(rows, KEY)
    assert pq.ParquetFile(pa.BufferReader(data)).num_row_groups == 2  # 27 rows
    back = read_rows(data)
    assert len(back) == 27
    assert all(same(left, right) for left, right in zip(rows, back, strict=True))
    assert all(row.stage1_token_ids.dtype == np.int32 for row in back)


def test_the_same_rows_give_the_same_bytes_and_another_key_others(rows: list[SampleRow]) -> None:
    assert render_samples(rows, KEY) == render_samples(list(rows), KEY)
    assert render_samples(rows, KEY) != render_samples(rows, make.key(96, "base"))


def test_columns_come_alone(rows: list[SampleRow]) -> None:
    table = read_columns(render_samples(rows, KEY), ["stage1_token_ids", "thinking_tokens"])
    lists = table.token_lists("stage1_token_ids")
    assert table.lengths("stage1_token_ids").tolist() == [len(row.stage1_token_ids) for row in rows]
    for ids, row in zip(lists, rows, strict=True):
        assert ids.dtype == np.int32
        assert np.array_equal(ids, row.stage1_token_ids)
    assert table.integers("thinking_tokens").tolist() == [row.thinking_tokens for row in rows]
    assert table.key == KEY
    assert table.select(["thinking_tokens"]).rows == 27
    with pytest.raises(KeyError):
        table.token_lists("stage2_token_ids")  # it was not asked for
    with pytest.raises(BundleError, match="no such sample column: 'text'"):
        read_columns(render_samples(rows, KEY), ["text"])


def test_no_rows_are_a_table_of_no_rows() -> None:
    table = read_columns(render_samples([], KEY))
    assert table.rows == 0
    assert table.token_lists("stage1_token_ids") == []
    assert table.lengths("stage1_token_ids").tolist() == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("record_id", 1),
        ("sample_index", True),
        ("sample_index", 2**31),
        ("stage1_seed", None),
        ("stage1_seed", 2**63),
        ("natural_close", 1),
        ("thinking_tokens", 5.0),
        ("stage1_token_ids", [1, 2]),
        ("stage1_token_ids", np.array([1, 2], dtype=np.int64)),
        ("stage1_token_ids", np.array([[1], [2]], dtype=np.int32)),
        ("stage1_token_ids", np.array([1, -1], dtype=np.int32)),
    ],
)
def test_a_value_with_no_place_is_refused_by_column(rows: list[SampleRow], field: str, value: Any) -> None:
    with pytest.raises(BundleError, match=f"sample column {field}"):
        render_samples([dataclasses.replace(rows[0], **{field: value})], KEY)


def test_surrogates_are_escaped_and_read_back_equal(rows: list[SampleRow]) -> None:
    broken = dataclasses.replace(
        rows[0], stage1_stop_reason="ok \ud835 end \\ \x00", stage1_finish_reason="\ufffd"
    )
    back = read_rows(render_samples([broken, *rows[1:]], KEY))
    assert back[0].stage1_stop_reason == "ok \ud835 end \\ \x00"
    assert back[0].stage1_finish_reason == "\ufffd"  # not stripped
    assert all(same(left, right) for left, right in zip(rows[1:], back[1:], strict=True))  # no row is lost


def rewritten(data: bytes, change: Any, *, metadata: bool = True) -> bytes:
    """The same file with its table changed, written as a stranger might."""
    source = pq.ParquetFile(pa.BufferReader(data))
    table = change(source.read())
    out = io.BytesIO()
    with pq.ParquetWriter(out, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        if metadata:
            writer.add_key_value_metadata(source.metadata.metadata)
    return out.getvalue()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.append_column("text", pa.array(["x"] * t.num_rows)), "'text' too"),
        (lambda t: t.drop_columns(["answer_tokens"]), "columns"),
        (lambda t: t.select(list(reversed(COLUMNS))), "columns"),
        (lambda t: t.rename_columns(["id", *COLUMNS[1:]]), "'id' too"),
        (
            lambda t: t.set_column(
                1, pa.field("sample_index", pa.int64(), nullable=False), t["sample_index"].cast("int64")
            ),
            "column sample_index",
        ),
        (
            lambda t: t.set_column(1, pa.field("sample_index", pa.int32()), t["sample_index"]),
            "column sample_index",
        ),
    ],
)
def test_another_schema_is_refused(rows: list[SampleRow], change: Any, words: str) -> None:
    with pytest.raises(BundleTampered, match=words):
        read_columns(rewritten(render_samples(rows, KEY), change))


def test_a_file_without_its_key_is_refused(rows: list[SampleRow]) -> None:
    with pytest.raises(BundleTampered, match="file metadata"):
        read_columns(rewritten(render_samples(rows, KEY), lambda table: table, metadata=False))


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", b'{"id":"s-001"}\n{"id":"s-00', b"\0" * 4096])
def test_what_is_no_parquet_is_refused(data: bytes) -> None:
    with pytest.raises(BundleTampered, match="not readable Parquet"):
        read_columns(data)


def test_no_column_could_hold_decoded_text() -> None:
    texts = {
        "record_id",
        "stage1_finish_reason",
        "stage1_stop_reason",
        "stage2_finish_reason",
        "stage2_stop_reason",
    }
    schema = pq.ParquetFile(pa.BufferReader(render_samples([], KEY))).schema_arrow
    assert {field.name for field in schema if pa.types.is_string(field.type)} == texts
