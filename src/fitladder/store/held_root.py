"""Holding a root for writing: it is of one experiment from its creation on, with one writer at a time.

`hold_root` is the only way to a `HeldRoot`, and every writer asks for one.
"""

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fitladder.errors import RootRefused
from fitladder.files.atomic import check_folder, make_folder, write_new
from fitladder.files.lock import HeldLock, hold_lock
from fitladder.files.sealed_json import render_sealed
from fitladder.records.layout import CATALOG, LOCK, OWNER
from fitladder.store.catalog import first_catalog
from fitladder.store.catalog_chain import load_chain, write_catalog
from fitladder.store.interrupted_writes import clear_interrupted_writes
from fitladder.store.owner import Owner, load_owner

__all__ = ["HeldRoot", "ensure_root", "hold_root"]


@dataclass(frozen=True)
class HeldRoot:
    """A root that belongs to this experiment and that nobody else writes to, while the lock is held."""

    path: Path
    experiment_id: str
    root_id: str
    lock: HeldLock


@contextmanager
def hold_root(
    root: Path, experiment_id: str, purpose: str, *, flow_run_id: str | None = None
) -> Iterator[HeldRoot]:
    """Hold an experiment's root, creating it where nothing stands. `root` comes from `resolve_root`.

    Raises RootBusy naming the holder, RootRefused where the folder is not this experiment's.
    """
    _create(root)
    with hold_lock(root / LOCK, purpose, flow_run_id=flow_run_id) as lock:
        clear_interrupted_writes(root)
        owner = _owner(root, experiment_id)
        yield HeldRoot(root, experiment_id, owner.root_id, lock)


def ensure_root(root: Path, experiment_id: str) -> str:
    """Make `root` this experiment's, or check that it is. Returns its root id; raises as `hold_root`."""
    with hold_root(root, experiment_id, "creation") as held:
        return held.root_id


def _create(root: Path) -> None:
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir()
        make_folder(root)  # durably
    except FileExistsError:
        check_folder(root, error=RootRefused)
        names = os.listdir(root)
        if names and not {LOCK, OWNER} & set(names):
            raise RootRefused(
                f"{root} holds other things", got=names[0], need="no folder yet, or an experiment's own root"
            ) from None
    except OSError as failure:
        raise RootRefused(f"{root} cannot be created", got=failure.strerror) from failure


def _owner(root: Path, experiment_id: str) -> Owner:
    names = set(os.listdir(root))
    owner = load_owner(root, experiment_id) or _first_owner(root, names, experiment_id)
    if CATALOG not in names:
        _first_catalog(root, owner)
    elif load_chain(root).root_id != owner.root_id:
        raise RootRefused(f"{root}: the catalog is of another root", need=f"root id {owner.root_id}")
    return owner


def _first_owner(root: Path, names: set[str], experiment_id: str) -> Owner:
    foreign = sorted(
        names - {LOCK}
    )  # a creation that died before its owner file was whole left only the lock
    if foreign:
        raise RootRefused(f"{root} holds other things and no owner", got=foreign[0], need=OWNER)
    # A name, not a draw: no result depends on it.
    root_id = hashlib.sha256(secrets.token_bytes(32)).hexdigest()
    owner = Owner(schema_version=1, experiment_id=experiment_id, root_id=root_id)
    write_new(root / OWNER, render_sealed(owner))
    return owner


def _first_catalog(root: Path, owner: Owner) -> None:
    foreign = sorted(set(os.listdir(root)) - {LOCK, OWNER})
    if foreign:
        raise RootRefused(f"{root} has lost its catalog", got=foreign[0], need=CATALOG)
    write_catalog(root, first_catalog(owner.experiment_id, owner.root_id))
