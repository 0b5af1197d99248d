"""Sample rows in memory: one of a true form, all of a samples file, and the columns that an audit sees."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fitladder.audit.columns import TerminationColumns
from fitladder.records.sample import SampleRow
from fitladder.sampling.parquet import COLUMNS, read_columns


def cut_row(ids: Any, record_id: str = "r-00", index: int = 0, **changes: Any) -> SampleRow:
    """A sample that was cut at its budget, force-closed and answered, unless said otherwise."""
    answer = np.asarray(changes.pop("stage2_token_ids", np.arange(9)), dtype=np.int32)
    values: dict[str, Any] = {
        "record_id": record_id,
        "sample_index": index,
        "prompt_tokens": 980,
        "stage1_seed": 1,
        "stage1_token_ids": np.asarray(ids, dtype=np.int32),
        "stage1_trimmed_tokens": 0,
        "stage1_finish_reason": "length",
        "stage1_stop_reason": None,
        "thinking_tokens": len(ids),
        "natural_close": False,
        "eos_inside_thinking": False,
        "forced_close": True,
        "answer_restart": False,
        "injected_tokens": 2,
        "stage2_seed": 2,
        "stage2_prompt_tokens": 982 + len(ids),
        "stage2_token_ids": answer,
        "stage2_trimmed_tokens": 1,
        "stage2_finish_reason": "stop",
        "stage2_stop_reason": None,
        "answer_tokens": len(answer),
    }
    return SampleRow(**{**values, **changes})


def read_rows(data: bytes) -> list[SampleRow]:
    """Every row of a samples file's bytes."""
    table = read_columns(data)
    columns: dict[str, Sequence[Any]] = {}
    for name in COLUMNS:
        if name.endswith("token_ids"):
            columns[name] = table.token_lists(name)
        elif name == "record_id" or name.endswith("reason"):
            columns[name] = table.texts(name)
        else:
            columns[name] = table.table.column(name).to_pylist()
    return [SampleRow(**{name: columns[name][row] for name in COLUMNS}) for row in range(table.rows)]


def columns_of(rows: Sequence[SampleRow]) -> TerminationColumns:
    """What an audit sees of these rows."""
    return TerminationColumns(
        record_ids=tuple(row.record_id for row in rows),
        sample_indices=np.array([row.sample_index for row in rows], dtype=np.int64),
        stage1_token_ids=tuple(row.stage1_token_ids for row in rows),
        thinking_tokens=np.array([row.thinking_tokens for row in rows], dtype=np.int64),
        stage1_finish_reasons=tuple(row.stage1_finish_reason for row in rows),
        natural_close=np.array([row.natural_close for row in rows], dtype=np.bool_),
        eos_inside_thinking=np.array([row.eos_inside_thinking for row in rows], dtype=np.bool_),
        forced_close=np.array([row.forced_close for row in rows], dtype=np.bool_),
        answer_restart=np.array([row.answer_restart for row in rows], dtype=np.bool_),
        stage2_tokens=np.array([len(row.stage2_token_ids) for row in rows], dtype=np.int64),
        stage2_finish_reasons=tuple(row.stage2_finish_reason for row in rows),
    )
