"""The device lock as rehearsals take it: shared among themselves, never with a phase.

A phase holds the device's lock for itself (`hold_lock`); rehearsals share it, so that whichever came first
keeps its memory: the second of a phase and a rehearsal is refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fitladder.errors import RootBusy
from fitladder.files.lock import flocked
from fitladder.phase.lock_holder import named_holder

__all__ = ["share_device"]


@contextmanager
def share_device(path: Path) -> Iterator[None]:
    """Share the device lock `path` with others that share it. Raises RootBusy naming the phase on it."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def busy(_: int) -> RootBusy:
        return RootBusy(
            f"{path} is held",
            got=named_holder(path) or "a holder without a name",
            need="no phase on the device",
            do="wait until it has ended; an engine next to it would take its memory",
        )

    with flocked(path, busy, shared=True):
        yield
