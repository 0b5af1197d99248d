"""What was asked, allowed, refused and handed over, in order, so that nobody can edit it unseen?

`data/approvals/<experiment>.jsonl`: one canonical line an entry, each naming the SHA-256 of the line before.
Reading is strict and whole: one bad byte and every later step refuses. Nothing is ever rewritten.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NoReturn

from fitladder.approval.clock import Utc
from fitladder.approval.go import Ask, Closing, Go, Handoff
from fitladder.canonical import canonical_bytes, parse_json, parse_model, sha256_bytes
from fitladder.errors import GoRefused
from fitladder.protocol.experiment import Frozen, Identifier, Sha256

__all__ = ["Draft", "Entry", "Kind", "adopt_chain", "append", "chain_path", "load_chain", "parse_chain"]

Kind = Literal["asked", "go", "no_go", "refused", "timed_out", "expired", "handoff"]
Statement = Ask | Go | Handoff | Closing
STATEMENT_OF_KIND: dict[Kind, type[Ask] | type[Go] | type[Handoff] | type[Closing]] = {
    "asked": Ask,
    "go": Go,
    "no_go": Go,
    "refused": Closing,
    "timed_out": Closing,
    "expired": Closing,
    "handoff": Handoff,
}
GENESIS = "0" * 64
LOCK_PATIENCE_S = 20.0


class Draft(Frozen):
    """An entry before it has a place in the chain. `identity` says how sure we are who spoke."""

    kind: Kind
    recorded: Utc
    statement: dict[str, Any]
    signature: str | None
    identity: Literal["signed", "self-asserted", "self", "derived"]


class Entry(Draft):
    """One line of the chain."""

    schema_version: Literal[1]
    experiment_id: Identifier
    sequence: int
    previous_sha256: Sha256

    def parsed(self) -> Statement:
        """The statement as its own model."""
        return parse_model(
            STATEMENT_OF_KIND[self.kind],
            self.statement,
            where=f"approval line {self.sequence}",
            error=GoRefused,
        )

    @property
    def sha256(self) -> str:
        """Digest of the line; the next entry's `previous_sha256`."""
        return sha256_bytes(canonical_bytes(self))


def chain_path(approvals: Path, experiment_id: str) -> Path:
    """Where an experiment's approvals lie below `data/approvals`."""
    return approvals / f"{experiment_id}.jsonl"


def parse_chain(data: bytes, experiment_id: str, *, where: str) -> tuple[Entry, ...]:
    """Every entry, checked: canonical bytes, sequence, links, statements. Raises GoRefused with the line."""

    def broken(number: int, got: object, need: object) -> NoReturn:
        raise GoRefused(
            f"{where} line {number}: the approval chain is broken",
            got=got,
            need=need,
            do="restore the file from git or DVC; it is never repaired by hand",
        )

    entries: list[Entry] = []
    previous = GENESIS
    lines = data.split(b"\n")
    if lines[-1]:
        broken(len(lines), "a torn last line", "a newline after every entry")
    for number, line in enumerate(lines[:-1], start=1):
        document = parse_json(line, where=f"{where} line {number}", error=GoRefused)
        entry = parse_model(Entry, document, where=f"{where} line {number}", error=GoRefused)
        if canonical_bytes(entry) != line:
            broken(number, "a line that is not canonical", "the bytes as they were written")
        if entry.previous_sha256 != previous:
            broken(number, f"previous {entry.previous_sha256}", previous)
        if entry.sequence != number:
            broken(number, f"sequence {entry.sequence}", number)
        statement = entry.parsed()
        for name in (entry.experiment_id, statement.experiment_id):
            if name != experiment_id:
                broken(number, f"experiment {name}", experiment_id)
        if isinstance(statement, Go) and (statement.verdict == "GO") != (entry.kind == "go"):
            broken(number, f"verdict {statement.verdict} recorded as {entry.kind}", "the kind of its verdict")
        entries.append(entry)
        previous = sha256_bytes(line)
    return tuple(entries)


def load_chain(path: Path, experiment_id: str) -> tuple[Entry, ...]:
    """`parse_chain` of a file; one that does not exist yet is an empty chain."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise GoRefused(f"{path} cannot be read", got=error.strerror) from error
    return parse_chain(data, experiment_id, where=str(path))


@contextlib.contextmanager
def _exclusive(path: Path) -> Iterator[int]:
    """The chain file, open and locked against every other writer on this machine."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise GoRefused(f"{path} cannot be opened for appending", got=error.strerror) from error
    try:
        deadline = time.monotonic() + LOCK_PATIENCE_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise GoRefused(
                        f"{path} stayed locked for {LOCK_PATIENCE_S:.0f} s", do="see who writes approvals"
                    ) from None
                time.sleep(0.05)
            except OSError as error:
                raise GoRefused(f"no lock to be had on {path}", got=error.strerror) from error
        yield descriptor
    finally:
        os.close(descriptor)


def _write(descriptor: int, path: Path, data: bytes) -> None:
    """All bytes and the folder entry reach the disk, or the torn rest is cut off again."""
    size = os.fstat(descriptor).st_size
    try:
        written = 0
        while written < len(data):
            written += os.write(descriptor, data[written:])
        os.fsync(descriptor)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
        raise GoRefused(f"{path} cannot be appended to", got=error.strerror, do="free disk space") from error
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def append(
    path: Path, experiment_id: str, decide: Callable[[tuple[Entry, ...]], Draft | None]
) -> tuple[Entry, ...]:
    """Read the chain under its lock, let `decide` look at it, and append what it returns, if anything.

    Returns the whole chain. `decide` makes a step idempotent: it returns None where its entry stands already.
    """
    with _exclusive(path) as descriptor:
        entries = parse_chain(path.read_bytes(), experiment_id, where=str(path))
        draft = decide(entries)
        if draft is None:
            return entries
        entry = Entry(
            **draft.model_dump(),
            schema_version=1,
            experiment_id=experiment_id,
            sequence=len(entries) + 1,
            previous_sha256=entries[-1].sha256 if entries else GENESIS,
        )
        line = canonical_bytes(entry) + b"\n"
        parse_chain(path.read_bytes() + line, experiment_id, where=str(path))
        _write(descriptor, path, line)
        return (*entries, entry)


def adopt_chain(path: Path, experiment_id: str, received: bytes) -> tuple[Entry, ...]:
    """Take over entries written on another host. One chain must continue the other; a fork is refused."""
    theirs = parse_chain(received, experiment_id, where="the received approval chain")
    with _exclusive(path) as descriptor:
        own = path.read_bytes()
        mine = parse_chain(own, experiment_id, where=str(path))
        if own.startswith(received):
            return mine
        if not received.startswith(own):
            at = next(i for i, (a, b) in enumerate(zip(mine, theirs, strict=False), start=1) if a != b)
            raise GoRefused(
                f"{path}: two approval chains of {experiment_id} fork at line {at}",
                got=theirs[at - 1].sha256,
                need=mine[at - 1].sha256,
                do="find out which host wrote approvals beside the launch host",
            )
        _write(descriptor, path, received[len(own) :])
        return theirs
