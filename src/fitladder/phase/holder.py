"""Who holds an experiment's root now? Read from the lock file without taking the lock.

For people who look on; a writer asks `hold_root`, whose answer the kernel gives.
"""

import socket
from pathlib import Path

from fitladder.bundles.layout import LOCK
from fitladder.bundles.lock import Holder, lives_here
from fitladder.canonical import parse_json, parse_model
from fitladder.errors import RootBusy

__all__ = ["dead_holder", "live_holder"]


def live_holder(root: Path) -> Holder | None:
    """The named holder, if it is a live process of this host. Raises RootBusy on a lock nobody can read."""
    holder = _named(root)
    return holder if holder is not None and lives_here(holder) else None


def dead_holder(root: Path) -> Holder | None:
    """The named holder, if it was a process of this host and died without giving the root back."""
    holder = _named(root)
    is_ours = holder is not None and holder.host == socket.gethostname()
    return holder if is_ours and holder is not None and not lives_here(holder) else None


def _named(root: Path) -> Holder | None:
    path = root / LOCK
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
