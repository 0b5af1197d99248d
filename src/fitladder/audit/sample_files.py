"""The samples of a file audit as records, and written as they come to JSON Lines or Parquet.

The file appears under its name when it is whole; what is written before lies beside it, hidden.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from fitladder.audit.token_files import ForeignSample
from fitladder.files.atomic import temporary_name

__all__ = ["SampleWriter", "open_samples", "sample_record"]

GROUP_ROWS = 4_096
RUN = pa.struct(
    [
        *((name, pa.int64()) for name in ("start_token", "end_token", "period_tokens", "matched_tokens")),
        ("compared_tokens", pa.int64()),
        ("burned_tokens", pa.int64()),
        ("ended_by_close", pa.bool_()),
    ]
)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("period_tokens", pa.int64()),
        ("match_rate", pa.float64()),
        *((name, pa.int64()) for name in ("onset_token", "tokens", "tokens_after_onset", "best_lag_tokens")),
        ("matched_tokens", pa.int64()),
        ("compared_tokens", pa.int64()),
        ("reason", pa.string()),
        ("judged_tokens", pa.int64()),
        *((name, pa.string()) for name in ("end", "end_by", "finish_reason")),
        *((name, pa.int64()) for name in ("padding_tokens", "close_token", "tail_hint_tokens")),
        ("burned_tokens", pa.int64()),
        ("runs", pa.list_(RUN)),
        ("found_by", pa.list_(pa.string())),
    ]
)


def sample_record(sample: ForeignSample) -> dict[str, Any]:
    """One sample as plain data: the tail rule's fields first, then the row's end, then runs anywhere."""
    found_by = [
        *(["tail rule"] if sample.period_tokens is not None else []),
        *(["runs anywhere"] if sample.runs else []),
    ]
    return {
        "id": sample.id,
        "period_tokens": sample.period_tokens,
        "match_rate": sample.match_rate,
        "onset_token": sample.onset_token,
        "tokens": sample.tokens,
        "tokens_after_onset": sample.tokens_after_onset,
        "best_lag_tokens": sample.best_lag_tokens,
        "matched_tokens": sample.matched_tokens,
        "compared_tokens": sample.compared_tokens,
        "reason": sample.reason,
        "judged_tokens": sample.judged_tokens,
        "end": sample.end,
        "end_by": sample.end_by,
        "finish_reason": sample.finish,
        "padding_tokens": sample.padding_tokens,
        "close_token": sample.close_token,
        "tail_hint_tokens": sample.tail_hint_tokens,
        "burned_tokens": sample.burned_tokens,
        "runs": [
            {
                "start_token": run.start_token,
                "end_token": run.end_token,
                "period_tokens": run.period_tokens,
                "matched_tokens": run.matched_tokens,
                "compared_tokens": run.compared_tokens,
                "burned_tokens": run.burned_tokens,
                "ended_by_close": sample.is_ended_by_close(run),
            }
            for run in sample.runs
        ],
        "found_by": found_by,
    }


class SampleWriter:
    """Appends samples to one open file, at most GROUP_ROWS held at a time."""

    def __init__(self, stream: IO[bytes], *, as_parquet: bool) -> None:
        self.stream = stream
        self.parquet = pq.ParquetWriter(stream, SCHEMA) if as_parquet else None
        self.held: list[dict[str, Any]] = []

    def write(self, samples: Sequence[ForeignSample]) -> None:
        """Append samples in order. Parquet holds every id as text."""
        if self.parquet is None:
            for sample in samples:
                self.stream.write(json.dumps(sample_record(sample), separators=(",", ":")).encode() + b"\n")
            return
        for sample in samples:
            self.held.append(_as_text(sample_record(sample)))
            if len(self.held) == GROUP_ROWS:
                self._flush()

    def finish(self) -> None:
        """Write what is held, and the end of the file."""
        if self.parquet is not None:
            self._flush()
            self.parquet.close()

    def _flush(self) -> None:
        if self.parquet is not None and self.held:
            self.parquet.write_table(pa.Table.from_pylist(self.held, schema=SCHEMA))
            self.held = []


def _as_text(record: dict[str, Any]) -> dict[str, Any]:
    """Text that UTF-8 can hold: a lone surrogate, which JSON allows, as its escape."""
    texts = ("id", "reason", "end_by", "finish_reason")
    safe = {
        name: str(record[name]).encode("utf-8", "backslashreplace").decode()
        for name in texts
        if record[name] is not None
    }
    return {**record, **safe}


@contextmanager
def open_samples(path: Path) -> Iterator[SampleWriter]:
    """A writer to `path`, by its ending: .parquet, else JSON Lines. On an error the old file stays."""
    hidden = path.with_name(temporary_name(path.name))
    try:
        with hidden.open("wb") as stream:
            writer = SampleWriter(stream, as_parquet=path.suffix == ".parquet")
            yield writer
            writer.finish()
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)
