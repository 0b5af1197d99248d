"""Verification of a root: disk and catalog agree, both ways; what only one of them has is refused.

Two differences are no contradiction but a write that died: the catalog entries that are still to be written
are named. It writes nothing.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fitladder.errors import BundleError, BundlePartial, BundleTampered, RootRefused
from fitladder.files.atomic import check_folder
from fitladder.records.binding import Binding
from fitladder.records.bundle_key import BundleKey
from fitladder.records.catalog import Catalog, CatalogEntry
from fitladder.records.layout import (
    CATALOG,
    CHECKPOINTS,
    LOCK,
    OWNER,
    PREFLIGHT,
    bundle_folder,
    parse_bundle_folder,
)
from fitladder.store.catalog_chain import load_chain
from fitladder.store.owner import load_owner
from fitladder.store.resume import check_resumable
from fitladder.store.verify_bundle import (
    VerifiedBundle,
    VerifiedPreflight,
    check_distinct,
    verify_bundle,
    verify_preflight,
)

__all__ = ["VerifiedRoot", "inspect_root", "verify_root"]

_BESIDES = frozenset({CATALOG, CHECKPOINTS, LOCK, OWNER})


@dataclass(frozen=True)
class VerifiedRoot:
    """Everything an experiment's root or its copy holds, in the order of the preflights' sequence."""

    root: Path
    catalog: Catalog
    bundles: tuple[VerifiedBundle, ...]
    preflights: tuple[VerifiedPreflight, ...]  # those that no bundle came of
    pending_entries: tuple[CatalogEntry, ...]  # on disk, not yet in the catalog

    @property
    def links(self) -> list[VerifiedBundle | VerifiedPreflight]:
        """Bundles and mere preflights together, in sequence."""
        both: list[VerifiedBundle | VerifiedPreflight] = [*self.bundles, *self.preflights]
        return sorted(both, key=lambda one: one.preflight.sequence)

    @property
    def interrupted(self) -> tuple[VerifiedPreflight, ...]:
        """Preflights that neither a bundle nor a later attempt came of."""
        newest = {one.key: one for one in self.links}
        return tuple(one for one in self.preflights if newest[one.key] is one)

    @property
    def used_go_sha256s(self) -> frozenset[str]:
        """Every GO that some preflight names."""
        return frozenset(entry.go_sha256 for entry in (*self.catalog.entries, *self.pending_entries))


def verify_root(root: Path, experiment_id: str, expected_binding: Binding | None = None) -> VerifiedRoot:
    """Every bundle of a root, or of its copy, and the catalog's whole chain. Read-only.

    Raises BundlePartial, BundleTampered or BundleError naming the file or folder; BindingChanged where a
    bundle was made under another generation binding than expected.
    """
    found = inspect_root(root, experiment_id, expected_binding)
    if found.pending_entries:
        raise BundlePartial(
            f"{root / CATALOG} lags behind: a write was interrupted",
            got=f"{found.pending_entries[0].key} is {found.pending_entries[0].state} on disk",
            need="the catalog to say so",
            do="run the phase again on the host that holds the root; it reconciles before it starts",
        )
    return found


def inspect_root(root: Path, experiment_id: str, expected_binding: Binding | None = None) -> VerifiedRoot:
    """`verify_root`, with catalog entries that are still to be written in `pending_entries`.

    Where an owner file stands, it is read as strictly as by a writer. Raises RootRefused too.
    """
    check_folder(root)
    catalog = load_chain(root)
    if catalog.experiment_id != experiment_id:
        raise BundleTampered(
            f"{root / CATALOG} is of another experiment", got=catalog.experiment_id, need=experiment_id
        )
    owner = load_owner(root, experiment_id)
    if owner is not None and owner.root_id != catalog.root_id:
        raise RootRefused(f"{root}: the catalog is of another root", need=f"root id {owner.root_id}")
    bundles: list[VerifiedBundle] = []
    preflights: list[VerifiedPreflight] = []
    pending: list[CatalogEntry] = []
    places = _places(root, experiment_id)
    for key, attempt in places:
        folder = root / bundle_folder(key, attempt)
        state = _state(folder)
        if state == "preflight_only":
            preflight = verify_preflight(folder, key, expected_binding)
            pending += _check_preflight(root, catalog, preflight)
            preflights.append(preflight)
        else:
            bundle = verify_bundle(folder, key, expected_binding)
            pending += _check_bundle(root, catalog, bundle)
            bundles.append(bundle)
    for entry in catalog.entries:
        if (entry.key, entry.attempt) not in places:
            raise BundleTampered(
                f"{root / entry.relative_path} has vanished", got="nothing", need=f"{entry.state} bundle"
            )
    check_distinct([*bundles, *preflights])
    _check_attempts([*bundles, *preflights])
    _check_one_protocol([*bundles, *preflights])
    return VerifiedRoot(
        root,
        catalog,
        tuple(sorted(bundles, key=lambda one: one.preflight.sequence)),
        tuple(sorted(preflights, key=lambda one: one.preflight.sequence)),
        tuple(pending),
    )


def _places(root: Path, experiment_id: str) -> list[tuple[BundleKey, int]]:
    """Keys and attempts of the folders that hold anything, in budget order. An empty one holds no bundle."""
    spots: list[tuple[BundleKey, int]] = []
    for rung in sorted(os.listdir(root)):
        if rung in _BESIDES:
            continue
        if not rung.startswith("think_"):
            raise BundleTampered(f"{root / rung} belongs to no experiment's root", need="think_<budget>")
        check_folder(root / rung)
        for phase in sorted(os.listdir(root / rung)):
            spot = parse_bundle_folder(experiment_id, rung, phase)
            check_folder(root / rung / phase)
            if os.listdir(root / rung / phase):
                spots.append(spot)
    return sorted(spots, key=lambda spot: (spot[0].thinking_budget_tokens, spot[0].phase, spot[1]))


def _state(folder: Path) -> Literal["preflight_only", "more"]:
    return "preflight_only" if os.listdir(folder) == [PREFLIGHT] else "more"


def _check_preflight(root: Path, catalog: Catalog, found: VerifiedPreflight) -> list[CatalogEntry]:
    _check_root_id(catalog, found)
    disk = CatalogEntry(
        key=found.key,
        attempt=found.preflight.attempt,
        sequence=found.preflight.sequence,
        state="preflight_only",
        go_sha256=found.preflight.go_sha256,
        files={PREFLIGHT: found.file},
    )
    entry = catalog.attempt(found.key, found.preflight.attempt)
    if entry is None and disk.sequence == catalog.next_sequence:
        return [disk]
    _check_same(root, entry, disk)
    return []


def _check_bundle(root: Path, catalog: Catalog, found: VerifiedBundle) -> list[CatalogEntry]:
    _check_root_id(catalog, found)
    disk = CatalogEntry(
        key=found.key,
        attempt=found.preflight.attempt,
        sequence=found.preflight.sequence,
        state="complete",
        go_sha256=found.preflight.go_sha256,
        files=found.files,
    )
    entry = catalog.attempt(found.key, found.preflight.attempt)
    if entry is not None and entry.state == "preflight_only":
        before = disk.model_copy(
            update={"state": "preflight_only", "files": {PREFLIGHT: disk.files[PREFLIGHT]}}
        )
        _check_same(root, entry, before)
        return [disk]
    _check_same(root, entry, disk)
    return []


def _check_root_id(catalog: Catalog, found: VerifiedBundle | VerifiedPreflight) -> None:
    if found.preflight.root_id != catalog.root_id:
        raise BundleTampered(
            f"{found.folder} was made in another root", got=found.preflight.root_id, need=catalog.root_id
        )


def _check_same(root: Path, entry: CatalogEntry | None, disk: CatalogEntry) -> None:
    folder = root / disk.relative_path
    if entry is None:
        raise BundleTampered(
            f"{folder} is not in the catalog", got=f"a {disk.state} bundle", need="nothing there"
        )
    if entry.state != disk.state:
        raise BundleTampered(f"{folder} fell back", got=disk.state, need=entry.state)
    for name, record in entry.files.items():
        if disk.files[name] != record:
            raise BundleTampered(
                f"{folder / name} is not the catalog's", got=disk.files[name].sha256, need=record.sha256
            )
    if entry != disk:
        raise BundleTampered(f"{folder}: sequence or GO is not the catalog's")


def _check_one_protocol(found: list[VerifiedBundle | VerifiedPreflight]) -> None:
    bindings = {one.preflight.binding.generation_sha256: one.folder for one in found}
    if len(bindings) > 1:
        (first, here), (second, there) = list(bindings.items())[:2]
        raise BundleError(f"{here} and {there} were made under different bindings", got=second, need=first)


def _check_attempts(found: list[VerifiedBundle | VerifiedPreflight]) -> None:
    """Every further attempt names all preflights before it, follows no bundle, and has the same identity."""
    earlier: dict[BundleKey, list[VerifiedBundle | VerifiedPreflight]] = {}
    for one in sorted(found, key=lambda one: one.preflight.attempt):
        before = earlier.setdefault(one.key, [])
        named = tuple(_preflight_sha256(other) for other in before)
        if one.preflight.resumes != named:
            raise BundleTampered(
                f"{one.folder} resumes other attempts than stand there",
                got=", ".join(one.preflight.resumes) or "none",
                need=", ".join(named) or "none",
            )
        if before:
            check_resumable(before[-1].preflight, one.preflight)
        before.append(one)


def _preflight_sha256(one: VerifiedBundle | VerifiedPreflight) -> str:
    return (one.files[PREFLIGHT] if isinstance(one, VerifiedBundle) else one.file).sha256
