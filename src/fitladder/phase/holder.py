"""Who holds an experiment's root now? Read from the lock file without taking the lock.

For people who look on; a writer asks `hold_root`, whose answer the kernel gives.
"""

import os
import socket
from pathlib import Path

from fitladder.bundles.layout import LOCK
from fitladder.bundles.lock import Holder
from fitladder.canonical import parse_json, parse_model
from fitladder.errors import RootBusy

__all__ = ["live_holder"]


def live_holder(root: Path) -> Holder | None:
    """The named holder, if it is a live process of this host. Raises RootBusy on a lock nobody can read."""
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
    holder = parse_model(Holder, plain, where=str(path), error=RootBusy)
    if holder.host != socket.gethostname():
        return None
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return holder
    return holder
