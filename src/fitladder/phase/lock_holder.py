"""Holder of an experiment's root, read from the lock file without taking the lock.

For display only; a writer asks `hold_root`, whose answer the kernel gives.
"""

import socket
from pathlib import Path

from fitladder.canonical import parse_json, parse_model
from fitladder.errors import RootBusy
from fitladder.files.lock import Holder, lives_here
from fitladder.records.layout import LOCK

__all__ = ["dead_holder", "live_holder", "named_holder"]


def live_holder(root: Path) -> Holder | None:
    """The named holder, if it is a live process of this host. Raises RootBusy on a lock nobody can read."""
    holder = named_holder(root / LOCK)
    return holder if holder is not None and lives_here(holder) else None


def dead_holder(root: Path) -> Holder | None:
    """The named holder, if it was a process of this host and died without giving the root back."""
    holder = named_holder(root / LOCK)
    is_ours = holder is not None and holder.host == socket.gethostname()
    return holder if is_ours and holder is not None and not lives_here(holder) else None


def named_holder(path: Path) -> Holder | None:
    """Whose name a lock file bears, alive or not. Raises RootBusy on a lock nobody can read."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RootBusy(f"{path} cannot be read", got=error.strerror) from error
    if not text:
        return None
    plain = parse_json(text, where=str(path), error=RootBusy)
    return parse_model(Holder, plain, where=str(path), error=RootBusy)
