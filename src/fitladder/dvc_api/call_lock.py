"""One process of one checkout at a time may call DVC; the others wait, within a bound.

DVC's own `--wait-for-lock` does not wait. What is done under the lock is the caller's.
"""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fitladder.errors import LineageError
from fitladder.files.lock import flocked

__all__ = ["LOCK_NAME", "project_lock"]

LOCK_NAME = ".dvc/tmp/fitladder.lock"


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
    except OSError as failure:
        raise LineageError(f"{path} cannot be opened", got=failure.strerror, need="a lock file") from failure

    def busy(descriptor: int) -> LineageError:
        return LineageError(
            f"{path} is held",
            got=f"{_holder(descriptor)} still at it after {wait_s:g} s",
            do="wait for it to end and run this again",
        )

    with flocked(path, busy, error=LineageError, wait_s=wait_s) as descriptor:
        _write(descriptor, {"host": socket.gethostname(), "pid": os.getpid(), "what": what})
        yield
        _write(descriptor, {})


def _write(handle: int, holder: dict[str, object]) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(holder).encode(), 0)


def _holder(handle: int) -> str:
    try:
        holder = json.loads(os.pread(handle, 4096, 0))
        return f"{holder['what']!r} (process {holder['pid']} on {holder['host']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
