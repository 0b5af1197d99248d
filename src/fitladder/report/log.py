"""What was noted while an experiment ran? An append-only log, each line chained to the one before.

`data/log/<experiment>.jsonl`. It decides nothing and is never rewritten; a broken chain refuses to be read.
"""

import fcntl
import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from fitladder.approval.clock import Utc
from fitladder.canonical import canonical_bytes, parse_json, parse_model, sha256_bytes
from fitladder.errors import LineageError, UsageError
from fitladder.protocol.settings import Frozen, Identifier, Sha256
from fitladder.report.view import LogLine
from fitladder.report.words import visible

__all__ = ["append_log", "load_log", "log_path", "parse_log"]

GENESIS = "0" * 64
MAX_CHARACTERS = 4000


class _Line(Frozen):
    schema_version: Literal[1]
    experiment_id: Identifier
    sequence: Annotated[int, Field(ge=1)]
    recorded: Utc
    author: Annotated[str, Field(min_length=1, max_length=120)]
    text: Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]
    previous_sha256: Sha256


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
    lines = data.split(b"\n")
    if lines[-1]:
        raise LineageError(
            f"{where} line {len(lines)} is torn", need="a newline after every line", do="restore it from git"
        )
    found: list[LogLine] = []
    previous = GENESIS
    for number, raw in enumerate(lines[:-1], start=1):
        place = f"{where} line {number}"
        line = parse_model(
            _Line, parse_json(raw, where=place, error=LineageError), where=place, error=LineageError
        )
        for name, got, need in (
            ("bytes", raw, canonical_bytes(line)),
            ("previous_sha256", line.previous_sha256, previous),
            ("sequence", line.sequence, number),
            ("experiment_id", line.experiment_id, experiment_id),
        ):
            if got != need:
                raise LineageError(f"{place}: the log's chain is broken at {name}", got=got, need=need)
        previous = sha256_bytes(raw)
        found.append(LogLine(number, line.recorded, line.author, line.text, previous))
    return tuple(found)


def append_log(data_dir: Path, experiment_id: str, text: str, *, author: str, recorded: str) -> LogLine:
    """Append one line and return it. Raises UsageError on unfit text, LineageError on a broken log."""
    words, path = visible(text.strip()), log_path(data_dir, experiment_id)
    if not words or len(words) > MAX_CHARACTERS:
        raise UsageError("log text", got=f"{len(words)} characters", need=f"1 to {MAX_CHARACTERS}")
    if not author.strip() or len(author) > 120:
        raise UsageError("log author", got=repr(author[:130]), need="a name of 1 to 120 characters; see --by")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise LineageError(f"{path} cannot be opened for appending", got=error.strerror) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
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
        _write_whole(handle, canonical_bytes(line) + b"\n")
    except OSError as error:
        raise LineageError(
            f"{path} cannot be appended to", got=error.strerror, do="free disk space"
        ) from error
    finally:
        os.close(handle)
    return load_log(data_dir, experiment_id)[-1]


def _write_whole(handle: int, data: bytes) -> None:
    """All bytes reach the disk, or none stay."""
    size = os.fstat(handle).st_size
    try:
        written = 0
        while written < len(data):
            written += os.write(handle, data[written:])
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise
