"""Running log of an experiment: append-only, each line chained to the one before.

`data/log/<experiment>.jsonl`. It decides nothing and is never rewritten; a broken chain refuses to be read.
"""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from fitladder.canonical import canonical_bytes
from fitladder.errors import LineageError, UsageError
from fitladder.files.jsonl_chain import Link, append_bytes, locked, next_place, parse_links, read_lines
from fitladder.report.view import LogLine
from fitladder.report.words import visible
from fitladder.utc import Utc

__all__ = ["append_log", "load_log", "log_path"]

MAX_CHARACTERS = 4000


class _Line(Link):
    recorded: Utc
    author: Annotated[str, Field(min_length=1, max_length=120)]
    text: Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]


def log_path(data_dir: Path, experiment_id: str) -> Path:
    """Where the log of `experiment_id` lies in the data folder `data_dir`."""
    return data_dir / "log" / f"{experiment_id}.jsonl"


def load_log(data_dir: Path, experiment_id: str) -> tuple[LogLine, ...]:
    """Every line of the log at `log_path(data_dir, experiment_id)`; empty where it does not exist yet.

    Raises LineageError naming the line that breaks the chain.
    """
    path = log_path(data_dir, experiment_id)
    lines = _parse(read_lines(path, LineageError), experiment_id, path)
    return tuple(LogLine(one.sequence, one.recorded, one.author, one.text, one.sha256) for one in lines)


def _parse(data: bytes, experiment_id: str, path: Path) -> tuple[_Line, ...]:
    what = "the log's chain"
    return parse_links(data, _Line, experiment_id, where=str(path), what=what, error=LineageError)


def append_log(data_dir: Path, experiment_id: str, text: str, *, author: str, recorded: str) -> LogLine:
    """Append one line to the log at `log_path(data_dir, experiment_id)` and return it.

    Args:
        data_dir: the data folder.
        experiment_id: a registered experiment.
        text: 1 to 4000 characters.
        author: who says so, 1 to 120 characters.
        recorded: UTC time, as `format_utc` writes it.

    Raises UsageError on unfit text or author, LineageError on a broken log.
    """
    words, path = visible(text.strip()), log_path(data_dir, experiment_id)
    if not words or len(words) > MAX_CHARACTERS:
        raise UsageError("log text", got=f"{len(words)} characters", need=f"1 to {MAX_CHARACTERS}")
    if not author.strip() or len(author) > 120:
        raise UsageError("log author", got=repr(author[:130]), need="a name of 1 to 120 characters; see --by")
    with locked(path, LineageError) as handle:
        lines = _parse(path.read_bytes(), experiment_id, path)
        line = _Line(
            **next_place(lines, experiment_id),
            recorded=recorded,
            author=visible(author.strip()),
            text=words,
        )
        append_bytes(handle, path, canonical_bytes(line) + b"\n", LineageError)
    return load_log(data_dir, experiment_id)[-1]
