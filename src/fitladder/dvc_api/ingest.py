"""Bundles brought from an external root into the checkout: verified there, copied, compared byte by byte.

The copy replaces the old one in one rename and is never partly there; after an interruption at any step the
next call continues from the disk. The root is only read. DVC is not called.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fitladder.canonical import sha256_bytes
from fitladder.errors import LineageError, RootRefused
from fitladder.files.atomic import create_durably, read_plain, sync_folder
from fitladder.records.experiment import Experiment
from fitladder.records.layout import CATALOG, CHECKPOINTS
from fitladder.records.registry import Registry
from fitladder.registry.binding import bind
from fitladder.registry.data_paths import bundles_folder
from fitladder.store.catalog_chain import load_chain
from fitladder.store.check_copy import check_copy
from fitladder.store.root import check_root
from fitladder.store.verify_root import VerifiedRoot, verify_root

__all__ = ["Ingested", "check_source", "ingest"]


@dataclass(frozen=True)
class Ingested:
    """What is in `data/bundles/X` now. `is_new` is False where it was there already."""

    experiment_id: str
    folder: Path
    bundles: int
    tree_sha256: str
    is_new: bool


def ingest(
    registry: Registry, experiment_id: str, root: Path, data_dir: Path, environment: Mapping[str, str]
) -> Ingested:
    """Copy the bundles of `root` into `data/bundles/X`.

    Raises RootRefused on a root that is not this experiment's to read, the kinds of BundleError and
    BindingChanged where root or copy cannot be believed, LineageError where the copy here is no earlier state
    of the root. The root is verified once; every file of a copy is read back and compared with the verified
    catalog. Call it under the project's lock.
    """
    experiment = registry.experiment(experiment_id)
    check_source(registry, experiment, root, environment)
    target = bundles_folder(data_dir, experiment_id)
    incoming, outgoing = (data_dir / name / experiment_id for name in (".incoming", ".outgoing"))
    _recover(target, incoming, outgoing)
    there = verify_root(root, experiment_id, bind(experiment))
    if _holds(target, there):
        return _done(there, target, is_new=False)
    _copy(there, incoming)
    check_copy(incoming, there.catalog)
    _exchange(target, incoming, outgoing)
    return _done(there, target, is_new=True)


def check_source(
    registry: Registry, experiment: Experiment, root: Path, environment: Mapping[str, str]
) -> None:
    """Raise RootRefused for a predecessor's root, or one of another experiment."""
    forbidden = [("a forbidden root", path) for path in experiment.artifacts.forbidden_roots]
    for other in registry.experiments.values():
        if other.experiment_id != experiment.experiment_id:
            named = (other.artifacts.root, environment.get(other.artifacts.environment_override))
            forbidden += [(f"the root of {other.experiment_id}", path) for path in named if path]
    check_root(str(root), forbidden)
    if not root.is_dir():
        raise RootRefused(f"artifact root {root} is absent", need=f"the root of {experiment.experiment_id}")


def _done(there: VerifiedRoot, target: Path, *, is_new: bool) -> Ingested:
    catalog = there.catalog
    return Ingested(catalog.experiment_id, target, len(there.bundles), catalog.tree.sha256, is_new)


def _recover(target: Path, incoming: Path, outgoing: Path) -> None:
    """A call that died: put the old copy back where the exchange was half done, clear what was not in yet."""
    if outgoing.is_dir():
        if os.path.lexists(target):
            shutil.rmtree(outgoing)
        else:
            outgoing.rename(target)
    if incoming.is_dir():
        shutil.rmtree(incoming)


def _holds(target: Path, there: VerifiedRoot) -> bool:
    """Whether the copy here is the root's state; an earlier one is not, any other is refused."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise LineageError(f"{target}", got="no folder of its own", need="a folder")
    if not target.is_dir() or not any(target.iterdir()):
        return False
    here = load_chain(target)
    if here == there.catalog:
        check_copy(target, there.catalog)
        return True
    complete = sum(one.state == "complete" for one in here.entries)
    states = [there.root / CATALOG, *(there.root / CHECKPOINTS).glob("*.json")]
    head = sha256_bytes(read_plain(target / CATALOG))
    if head not in {sha256_bytes(read_plain(path)) for path in states}:
        raise LineageError(
            f"{target} is no earlier state of {there.root}",
            got=f"checkpoint {here.checkpoint}, {complete} bundles",
            need=f"one of the {there.catalog.checkpoint + 1} checkpoints of the root",
            do="nothing that was carried may disappear; find out which of the two is right",
        )
    check_copy(target, here)  # a checkpoint of the verified root, so that its digests are verified ones
    return False


def _copy(there: VerifiedRoot, incoming: Path) -> None:
    """Every catalogued file, byte by byte; lock and owner stay with the root."""
    names = [CATALOG]
    names += [f"{CHECKPOINTS}/{path.name}" for path in sorted((there.root / CHECKPOINTS).glob("*.json"))]
    names += [f"{entry.relative_path}/{name}" for entry in there.catalog.entries for name in entry.files]
    for name in names:
        path = incoming / name
        path.parent.mkdir(parents=True, exist_ok=True)
        create_durably(path, read_plain(there.root / name))
    for folder, _, _ in os.walk(incoming):
        sync_folder(Path(folder))


def _exchange(target: Path, incoming: Path, outgoing: Path) -> None:
    try:
        if target.is_dir():
            outgoing.parent.mkdir(exist_ok=True)
            target.rename(outgoing)
        target.parent.mkdir(exist_ok=True)
        incoming.rename(target)
        sync_folder(target.parent)
        if outgoing.is_dir():
            shutil.rmtree(outgoing)
    except OSError as failure:
        raise LineageError(f"{target} cannot be exchanged", got=failure.strerror or failure) from failure
