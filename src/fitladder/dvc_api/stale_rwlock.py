"""Removal of DVC's list of path users, `.dvc/tmp/rwlock`, after a dvc process was killed.

DVC asks only whether a process id exists, and so takes a zombie or a recycled id for a living holder. The
list is removed only where no living dvc has one of its ids.
"""

import json
import time
from pathlib import Path
from typing import Any

from fitladder.errors import LineageError

__all__ = ["clear_stale_rwlock", "is_living_dvc"]

RWLOCK = ".dvc/tmp/rwlock"
PATIENCE_S = 1.0  # a living dvc writes the file whole within milliseconds


def clear_stale_rwlock(checkout: Path, proc: Path = Path("/proc")) -> bool:
    """Remove the list where none of its users lives, and return whether it was removed.

    Args:
        checkout: the DVC checkout, whose project lock the caller holds.
        proc: process file system; where it is absent nothing can be known, and nothing is removed.

    Raises LineageError where the list cannot be removed.
    """
    path = checkout / RWLOCK
    if not path.is_file() or not proc.is_dir():
        return False
    users = _users(path)
    if users and any(is_living_dvc(pid, proc) for pid in users):
        return False
    try:
        path.unlink(missing_ok=True)
    except OSError as failure:
        raise LineageError(f"{path} cannot be removed", got=failure.strerror) from failure
    return True


def is_living_dvc(pid: int, proc: Path) -> bool:
    """Whether this process runs and is a dvc; a zombie holds nothing."""
    try:
        state = (proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0]
        words = (proc / str(pid) / "cmdline").read_bytes()
    except (OSError, IndexError):
        return False
    return state not in (b"Z", b"X") and b"dvc" in words


def _users(path: Path) -> set[int]:
    """Process ids in the list; none where it is still no list after a while (a writer died in its middle)."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            plain: Any = json.loads(path.read_bytes())
            readers = [one for users in plain.get("read", {}).values() for one in users]
            writers = list(plain.get("write", {}).values())
            return {int(one["pid"]) for one in (*readers, *writers) if one}
        except FileNotFoundError:
            return set()
        except (ValueError, AttributeError, KeyError, TypeError):
            if time.monotonic() >= deadline:
                return set()
            time.sleep(0.05)
