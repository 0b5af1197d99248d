"""Append-only JSON lines, each with the SHA-256 of the line before; a line is appended whole or not at all.

Approvals, uses and logs are kept so; nothing is ever rewritten.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from pydantic import Field

from fitladder.canonical import canonical_bytes, parse_json, parse_model, sha256_bytes
from fitladder.errors import FitladderError
from fitladder.files.atomic import sync_folder
from fitladder.files.lock import flocked
from fitladder.frozen import Frozen, Identifier, Sha256

__all__ = ["Link", "append_bytes", "locked", "next_place", "parse_links", "read_lines", "refuse_line"]

GENESIS = "0" * 64
LOCK_PATIENCE_S = 20.0


class Link(Frozen):
    """Fields of every line: its experiment, its number from 1 and the digest of the line before."""

    schema_version: Literal[1]
    experiment_id: Identifier
    sequence: Annotated[int, Field(ge=1)]
    previous_sha256: Sha256

    @property
    def sha256(self) -> str:
        """Digest of the line; the next one's `previous_sha256`."""
        return sha256_bytes(canonical_bytes(self))


_Line = TypeVar("_Line", bound=Link)


def read_lines(path: Path, error: type[FitladderError]) -> bytes:
    """The file's bytes; none where there is no file yet. Raises `error` where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as failure:
        raise error(f"{path} cannot be read", got=failure.strerror) from failure


def next_place(lines: Sequence[Link], experiment_id: str) -> dict[str, Any]:
    """The fields of `Link` for the line that follows these."""
    return {
        "schema_version": 1,
        "experiment_id": experiment_id,
        "sequence": len(lines) + 1,
        "previous_sha256": lines[-1].sha256 if lines else GENESIS,
    }


def parse_links(
    data: bytes, model: type[_Line], experiment_id: str, *, where: str, what: str, error: type[FitladderError]
) -> tuple[_Line, ...]:
    """Every line, checked: canonical bytes, links, sequence, experiment. Raises `error` with the line."""
    found: list[_Line] = []
    previous = GENESIS
    lines = data.split(b"\n")
    if lines[-1]:
        need = "a newline after every line"
        refuse_line(f"{where} line {len(lines)}", what, got="a torn last line", need=need, error=error)
    for number, line in enumerate(lines[:-1], start=1):
        place = f"{where} line {number}"
        link = parse_model(model, parse_json(line, where=place, error=error), where=place, error=error)
        for name, got, need_value in (
            ("bytes", line, canonical_bytes(link)),
            ("previous_sha256", link.previous_sha256, previous),
            ("sequence", link.sequence, number),
            ("experiment_id", link.experiment_id, experiment_id),
        ):
            if got != need_value:
                refuse_line(
                    place, what, got=f"{name} {got!r}"[:200], need=repr(need_value)[:200], error=error
                )
        previous = sha256_bytes(line)
        found.append(link)
    return tuple(found)


def refuse_line(place: str, what: str, *, got: object, need: object, error: type[FitladderError]) -> NoReturn:
    """The one wording for a line that breaks a chain; `place` is file and line."""
    do = "restore the file from Git or DVC; it is never repaired by hand"
    raise error(f"{place}: {what} is broken", got=got, need=need, do=do)


@contextlib.contextmanager
def locked(path: Path, error: type[FitladderError]) -> Iterator[int]:
    """The file's descriptor, open for appending and locked against every other writer on this machine.

    Creates the folder. Raises `error` where it stays locked for 20 s or cannot be locked at all.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise error(f"{path} cannot be opened for appending", got=failure.strerror) from failure

    def busy(_: int) -> FitladderError:
        return error(f"{path} stayed locked for {LOCK_PATIENCE_S:.0f} s", do="see which process writes it")

    with flocked(path, busy, error=error, append=True, wait_s=LOCK_PATIENCE_S) as descriptor:
        yield descriptor


def append_bytes(descriptor: int, path: Path, data: bytes, error: type[FitladderError]) -> None:
    """Append durably at the end of a locked file; a write that fails is cut off again, and raises `error`."""
    size = os.fstat(descriptor).st_size
    try:
        written = 0
        while written < len(data):
            written += os.write(descriptor, data[written:])
        os.fsync(descriptor)
    except OSError as failure:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
        raise error(f"{path} cannot be appended to", got=failure.strerror, do="free disk space") from failure
    sync_folder(path.parent)
