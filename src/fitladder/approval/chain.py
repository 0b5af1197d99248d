"""The approval chain: asks, answers and hand-offs in order, each line bound to the one before.

`data/approvals/<experiment>.jsonl`: one canonical line an entry, each naming the SHA-256 of the line before.
Reading is strict and whole: one bad byte and every later step refuses. Nothing is ever rewritten.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from fitladder.canonical import canonical_bytes
from fitladder.errors import GoRefused
from fitladder.files.jsonl_chain import (
    append_bytes,
    locked,
    next_place,
    parse_links,
    read_lines,
    refuse_line,
)
from fitladder.records.approval import Go
from fitladder.records.approval_entry import Draft, Entry

__all__ = ["adopt_chain", "append", "chain_path", "load_chain", "parse_chain"]

_WHAT = "the approval chain"


def chain_path(approvals: Path, experiment_id: str) -> Path:
    """Where an experiment's approvals lie below `data/approvals`."""
    return approvals / f"{experiment_id}.jsonl"


def parse_chain(data: bytes, experiment_id: str, *, where: str) -> tuple[Entry, ...]:
    """Every entry, checked: canonical bytes, sequence, links, statements. Raises GoRefused with the line."""
    entries = parse_links(data, Entry, experiment_id, where=where, what=_WHAT, error=GoRefused)
    for entry in entries:
        statement = entry.parsed()
        if statement.experiment_id != experiment_id:
            _broken(where, entry, f"experiment {statement.experiment_id}", experiment_id)
        if isinstance(statement, Go) and (statement.verdict == "GO") != (entry.kind == "go"):
            got = f"verdict {statement.verdict} recorded as {entry.kind}"
            _broken(where, entry, got, "the kind of its verdict")
    return entries


def _broken(where: str, entry: Entry, got: str, need: str) -> NoReturn:
    refuse_line(f"{where} line {entry.sequence}", _WHAT, got=got, need=need, error=GoRefused)


def load_chain(path: Path, experiment_id: str) -> tuple[Entry, ...]:
    """`parse_chain` of a file; one that does not exist yet is an empty chain."""
    return parse_chain(read_lines(path, GoRefused), experiment_id, where=str(path))


def append(
    path: Path, experiment_id: str, decide: Callable[[tuple[Entry, ...]], Draft | None]
) -> tuple[Entry, ...]:
    """Read the chain under its lock, let `decide` look at it, and append what it returns, if anything.

    Returns the whole chain. `decide` makes a step idempotent: it returns None where its entry stands already.
    """
    with locked(path, GoRefused) as descriptor:
        entries = parse_chain(path.read_bytes(), experiment_id, where=str(path))
        draft = decide(entries)
        if draft is None:
            return entries
        entry = Entry(**draft.model_dump(), **next_place(entries, experiment_id))
        line = canonical_bytes(entry) + b"\n"
        parse_chain(path.read_bytes() + line, experiment_id, where=str(path))
        append_bytes(descriptor, path, line, GoRefused)
        return (*entries, entry)


def adopt_chain(path: Path, experiment_id: str, received: bytes) -> tuple[Entry, ...]:
    """Take over entries written on another host. One chain must continue the other; a fork is refused."""
    theirs = parse_chain(received, experiment_id, where="the received approval chain")
    with locked(path, GoRefused) as descriptor:
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
                do="find out which host wrote approvals apart from the launch host",
            )
        append_bytes(descriptor, path, received[len(own) :], GoRefused)
        return theirs
