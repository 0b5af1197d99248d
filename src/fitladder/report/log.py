"""What was noted while an experiment ran? An append-only log, each line chained to the one before.

`data/log/<experiment>.jsonl`. It decides nothing and is never rewritten; a broken chain refuses to be read.
"""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from fitladder.approval.clock import Utc
from fitladder.canonical import canonical_bytes
from fitladder.chained import GENESIS, Link, append_bytes, locked, parse_links
from fitladder.errors import LineageError, UsageError
from fitladder.report.view import LogLine
from fitladder.report.words import visible

__all__ = ["append_log", "load_log", "log_path", "parse_log"]

MAX_CHARACTERS = 4000


class _Line(Link):
    recorded: Utc
    author: Annotated[str, Field(min_length=1, max_length=120)]
    text: Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]


def log_path(data_dir: Path, experiment_id: str) -> Path:
    """Where the log of an experiment lies."""
    return data_dir / "log" / f"{experiment_id}.jsonl"


def load_log(data_dir: Path, experiment_id: str) -> tuple[LogLine, ...]:
    """Every line, the chain checked; a log that does not exist yet is empty. Raises LineageError by line."""
    path = log_path(data_dir, experiment_id)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise LineageError(f"{path} cannot be read", got=error.strerror) from error
    return parse_log(data, experiment_id, where=str(path))


def parse_log(data: bytes, experiment_id: str, *, where: str) -> tuple[LogLine, ...]:
    """`load_log` of bytes."""
    lines = parse_links(data, _Line, experiment_id, where=where, what="the log's chain", error=LineageError)
    return tuple(LogLine(one.sequence, one.recorded, one.author, one.text, one.sha256) for one in lines)


def append_log(data_dir: Path, experiment_id: str, text: str, *, author: str, recorded: str) -> LogLine:
    """Append one line and return it. Raises UsageError on unfit text, LineageError on a broken log."""
    words, path = visible(text.strip()), log_path(data_dir, experiment_id)
    if not words or len(words) > MAX_CHARACTERS:
        raise UsageError("log text", got=f"{len(words)} characters", need=f"1 to {MAX_CHARACTERS}")
    if not author.strip() or len(author) > 120:
        raise UsageError("log author", got=repr(author[:130]), need="a name of 1 to 120 characters; see --by")
    with locked(path, LineageError) as handle:
        lines = parse_log(path.read_bytes(), experiment_id, where=str(path))
        line = _Line(
            schema_version=1,
            experiment_id=experiment_id,
            sequence=len(lines) + 1,
            recorded=recorded,
            author=visible(author.strip()),
            text=words,
            previous_sha256=lines[-1].sha256 if lines else GENESIS,
        )
        append_bytes(handle, path, canonical_bytes(line) + b"\n", LineageError)
    return load_log(data_dir, experiment_id)[-1]
