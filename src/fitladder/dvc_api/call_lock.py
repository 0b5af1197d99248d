"""Who may speak to DVC now? One process of one checkout at a time; the others wait, within a bound.

DVC's own lock does not queue. It knows nothing of what is done under it.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fitladder.errors import LineageError

__all__ = ["LOCK_NAME", "project_lock"]

LOCK_NAME = ".dvc/tmp/fitladder.lock"
POLL_S = 0.1


@contextmanager
def project_lock(checkout: Path, what: str, *, wait_s: float) -> Iterator[None]:
    """Hold the checkout's one lock while `what` runs; the kernel frees it when the holder dies.

    Raises LineageError naming the holder after `wait_s` seconds, or at once where no lock can be had at all.
    """
    path = checkout / LOCK_NAME
    if not (checkout / ".dvc").is_dir():
        raise LineageError(f"{checkout} is no DVC checkout", got="no .dvc in it", do="run from the checkout")
    try:
        path.parent.mkdir(exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as failure:
        raise LineageError(f"{path} cannot be opened", got=failure.strerror, need="a lock file") from failure
    try:
        _wait(handle, path, wait_s)
        _write(handle, {"host": socket.gethostname(), "pid": os.getpid(), "what": what})
        yield
        _write(handle, {})
    finally:
        os.close(handle)


def _wait(handle: int, path: Path, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LineageError(
                    f"{path} is held",
                    got=f"{_holder(handle)} still at it after {wait_s:g} s",
                    do="wait for it to end and run this again",
                ) from None
            time.sleep(POLL_S)
        except OSError as failure:
            raise LineageError(
                f"{path} cannot be locked",
                got=failure.strerror,
                need="a file system with locks",
                do="move the checkout to a local disk",
            ) from failure
        else:
            return


def _write(handle: int, holder: dict[str, object]) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(holder).encode(), 0)


def _holder(handle: int) -> str:
    try:
        holder = json.loads(os.pread(handle, 4096, 0))
        return f"{holder['what']!r} (process {holder['pid']} on {holder['host']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
