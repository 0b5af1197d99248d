"""File locks: flock(2) on a descriptor, and an exclusive one whose file names its holder.

The kernel decides; the text in the file only says who. A lock that cannot be had, cannot be read or was left
by another host is a refusal, and the file is never removed. Not filelock (4.3): it has no shared mode beside
an exclusive one on one file, keeps to itself the descriptor on which the holder's name and the file's
identity are checked, and falls back to a marker file where flock is missing.
"""

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from fitladder.canonical import canonical_bytes, parse_json, parse_model
from fitladder.errors import FitladderError, RootBusy
from fitladder.frozen import Frozen

__all__ = ["HeldLock", "Holder", "flocked", "hold_lock", "lives_here", "this_holder"]

MAX_HOLDER_BYTES = 4096
POLL_S = 0.05
NAME_PATIENCE_S = 0.5  # between taking the lock and writing its name a holder needs some microseconds
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Holder(Frozen):
    """A process, so named that a recycled process id is not taken for it."""

    schema_version: Literal[1]
    host: str
    boot_id: str | None  # None where the platform does not say
    pid: int
    started_ticks: int | None
    flow_run_id: str | None
    purpose: str

    def __str__(self) -> str:
        run = f", flow run {self.flow_run_id}" if self.flow_run_id else ""
        return f"pid {self.pid} on {self.host} ({self.purpose}{run})"


@dataclass
class HeldLock:
    """A lock that is held until the `with` block of `hold_lock` ends."""

    path: Path
    holder: Holder
    dead_holder: Holder | None  # who held it before and died without giving it back
    descriptor: int | None

    def check(self) -> None:
        """Still held, and its file still the one that everybody else would lock. Raises RootBusy."""
        try:
            here = None if self.descriptor is None else os.fstat(self.descriptor)
            there = self.path.lstat()
        except OSError as failure:
            raise RootBusy(f"{self.path} is gone while it was held", got=failure.strerror) from failure
        if here is None or (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            raise RootBusy(f"{self.path} is held no more", need="the lock, for every write")


def this_holder(purpose: str, flow_run_id: str | None = None) -> Holder:
    """This process as a holder."""
    return Holder(
        schema_version=1,
        host=socket.gethostname(),
        boot_id=_boot_id(),
        pid=os.getpid(),
        started_ticks=_started_ticks(os.getpid()),
        flow_run_id=flow_run_id,
        purpose=purpose,
    )


@contextmanager
def hold_lock(path: Path, purpose: str, *, flow_run_id: str | None = None) -> Iterator[HeldLock]:
    """Hold the lock file `path` exclusively, or raise RootBusy at once, naming the holder where it is known.

    The folder must exist. Two threads of one process exclude each other too.
    """

    def busy(descriptor: int) -> RootBusy:
        return RootBusy(
            f"{path} is held",
            got=_name_of_holder(descriptor),
            need="nobody else",
            do="wait until it has ended, or ask whoever runs it",
        )

    with flocked(path, busy) as descriptor:
        dead = _check_left_behind(path, descriptor)
        held = HeldLock(path, this_holder(purpose, flow_run_id), dead, descriptor)
        _write(descriptor, canonical_bytes(held.holder) + b"\n")
        held.check()
        try:
            yield held
        finally:
            held.descriptor = None
            os.ftruncate(descriptor, 0)  # given back: no name is left behind


@contextmanager
def flocked(
    path: Path,
    busy: Callable[[int], FitladderError],
    *,
    error: type[FitladderError] = RootBusy,
    shared: bool = False,
    append: bool = False,
    wait_s: float = 0.0,
) -> Iterator[int]:
    """The descriptor of `path`, created where it is missing and locked by flock(2) until the block ends.

    The one lock primitive: roots and devices, approval chains and DVC calls go through it. The kernel frees
    the lock when its holder dies. Two opens exclude each other within one process, too.

    Args:
        path: a plain file in an existing folder; a link is not followed.
        busy: makes the refusal of a lock that somebody else holds, from the descriptor.
        error: class raised where no lock can be had at all, as on a file system without locks.
        shared: LOCK_SH, for holders that only keep an exclusive one out.
        append: whether what is written through the descriptor goes to the end of the file.
        wait_s: how long to try; 0 refuses at once.
    """
    try:
        descriptor = os.open(path, _OPEN | (os.O_APPEND if append else 0), 0o644)
    except OSError as failure:
        raise error(f"{path} cannot be opened: no lock can be had", got=failure.strerror) from failure
    try:
        operation = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
        deadline = time.monotonic() + wait_s
        while not _taken(path, descriptor, operation, error):
            if time.monotonic() >= deadline:
                raise busy(descriptor)
            time.sleep(POLL_S)
        yield descriptor
    finally:
        os.close(descriptor)


def _taken(path: Path, descriptor: int, operation: int, error: type[FitladderError]) -> bool:
    try:
        fcntl.flock(descriptor, operation)
    except BlockingIOError:
        return False
    except OSError as failure:
        raise error(
            f"{path}: no lock can be had",
            got=failure.strerror,
            need="a file system with locks",
            do="use a local disk",
        ) from failure
    return True


def _name_of_holder(descriptor: int) -> str:
    deadline = time.monotonic() + NAME_PATIENCE_S
    while not (text := os.pread(descriptor, MAX_HOLDER_BYTES, 0)):
        if time.monotonic() > deadline:
            return "a holder that has not written its name"
        time.sleep(0.005)
    try:
        return str(_parse(text, "the lock"))
    except RootBusy:
        return "a holder without a readable name"


def _check_left_behind(path: Path, descriptor: int) -> Holder | None:
    """A name in a lock that nobody holds: a dead process of this host may be followed, nobody else."""
    text = os.pread(descriptor, MAX_HOLDER_BYTES, 0)
    if not text:
        return None
    try:
        left = _parse(text, str(path))
    except RootBusy as failure:
        _refuse_left(path, failure, "somebody who cannot be read")
    if left.host != socket.gethostname():
        _refuse_left(path, left, "another host, whose processes cannot be seen from here")
    if lives_here(left):
        _refuse_left(path, left, "a live process, although the lock is free")
    return left


def _refuse_left(path: Path, left: object, why: str) -> NoReturn:
    raise RootBusy(
        f"{path} names {why}",
        got=left,
        need="nobody else",
        do="make sure that it has ended, then empty the file by hand",
    )


def lives_here(holder: Holder) -> bool:
    """Whether that very process, not another of its number, is alive on this host."""
    here = (socket.gethostname(), _boot_id())
    return (holder.host, holder.boot_id) == here and _is_alive(holder)


def _is_alive(holder: Holder) -> bool:
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return holder.started_ticks is None or holder.started_ticks == _started_ticks(holder.pid)


def _parse(text: bytes, where: str) -> Holder:
    return parse_model(Holder, parse_json(text, where=where, error=RootBusy), where=where, error=RootBusy)


def _write(descriptor: int, text: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text, 0)
    os.fsync(descriptor)


def _boot_id() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _started_ticks(pid: int) -> int | None:
    """Start of a process in clock ticks since boot (proc(5), field 22); None where it cannot be known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[19])
    except (OSError, IndexError, ValueError):
        return None
