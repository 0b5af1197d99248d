"""What did a dvc process that was killed leave in the way, and may it be cleared?

DVC lists who uses which path in `.dvc/tmp/rwlock`, and takes a zombie or a recycled process id for a living
holder. An entry is cleared only where no living dvc has that id.
"""

import json
import time
from pathlib import Path
from typing import Any

from fitladder.errors import LineageError

__all__ = ["clear_leftovers", "is_living_dvc"]

RWLOCK = ".dvc/tmp/rwlock"
PATIENCE_S = 1.0  # a living dvc writes the file anew within milliseconds


def clear_leftovers(checkout: Path, proc: Path = Path("/proc")) -> bool:
    """Remove DVC's list of users where none of them lives; whether it was removed. Needs the project's lock.

    Where `proc` is absent nothing can be known, and nothing is cleared. Raises LineageError where the list
    cannot be removed.
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
