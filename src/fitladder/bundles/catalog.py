"""Which bundles does an experiment's root hold, and how may that list change?

A chain of checkpoints: each names the one before it by SHA-256, and differs from it by one new
preflight-only entry or by one entry that became complete. Pure; chain.py reads and writes it.
"""

from typing import Literal, Self

from pydantic import model_validator

from fitladder.bundles.layout import BUNDLE_FILES, PREFLIGHT
from fitladder.bundles.schemas import FileRecord, Size
from fitladder.bundles.sealed import render_sealed
from fitladder.bundles.tree import Tree, tree_of
from fitladder.canonical import sha256_bytes
from fitladder.errors import BundleError
from fitladder.protocol.experiment import Frozen, Identifier, Sha256
from fitladder.protocol.key import BundleKey

__all__ = ["Catalog", "CatalogEntry", "EntryState", "advance", "first_catalog"]

EntryState = Literal["preflight_only", "complete"]


class CatalogEntry(Frozen):
    """One bundle: its files by name, all four once it is complete."""

    key: BundleKey
    sequence: Size
    state: EntryState
    go_sha256: Sha256
    files: dict[str, FileRecord]

    @model_validator(mode="after")
    def _files_of_state(self) -> Self:
        need = [PREFLIGHT] if self.state == "preflight_only" else sorted(BUNDLE_FILES)
        if sorted(self.files) != need:
            raise ValueError(f"files: got {sorted(self.files)} in state {self.state}, need {need}")
        return self


class Catalog(Frozen):
    """The inventory at one checkpoint. `tree` covers the files of all entries and nothing else."""

    schema_version: Literal[1]
    experiment_id: Identifier
    root_id: Sha256
    checkpoint: Size
    previous_sha256: Sha256 | None
    entries: tuple[CatalogEntry, ...]
    tree: Tree

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.checkpoint == 0) != (self.previous_sha256 is None):
            raise ValueError("previous_sha256: only the first checkpoint has none")
        if [entry.sequence for entry in self.entries] != list(range(len(self.entries))):
            raise ValueError("entries: must stand in the order of their sequence, from 0")
        keys = [entry.key for entry in self.entries]
        if len(set(keys)) != len(keys):
            raise ValueError("entries: a key stands twice")
        if any(key.experiment_id != self.experiment_id for key in keys):
            raise ValueError(f"entries: a bundle of another experiment than {self.experiment_id}")
        goes = [entry.go_sha256 for entry in self.entries]
        if len(set(goes)) != len(goes):
            raise ValueError("entries: a GO stands twice; it is used once")
        if self.tree != _tree(self.entries):
            raise ValueError(f"tree: got {self.tree.sha256}, the entries give {_tree(self.entries).sha256}")
        return self

    def entry(self, key: BundleKey) -> CatalogEntry | None:
        """The entry of this key, None where there is none."""
        return next((entry for entry in self.entries if entry.key == key), None)

    @property
    def next_sequence(self) -> int:
        """The sequence that the next preflight must have."""
        return len(self.entries)


def _tree(entries: tuple[CatalogEntry, ...]) -> Tree:
    return tree_of(
        {
            f"{entry.key.relative_path}/{name}": record
            for entry in entries
            for name, record in entry.files.items()
        }
    )


def first_catalog(experiment_id: str, root_id: str) -> Catalog:
    """The empty catalog of a fresh root."""
    return Catalog(
        schema_version=1,
        experiment_id=experiment_id,
        root_id=root_id,
        checkpoint=0,
        previous_sha256=None,
        entries=(),
        tree=_tree(()),
    )


def advance(catalog: Catalog, entry: CatalogEntry) -> Catalog:
    """The next checkpoint: `entry` is new and preflight-only, or completes its preflight-only self.

    Pure. Raises BundleError on every other change.
    """
    old = catalog.entry(entry.key)
    if old is None:
        if entry.state != "preflight_only":
            raise BundleError(f"catalog: {entry.key} appears as complete", need="its preflight first")
        _check_addition(catalog, entry)
        entries = (*catalog.entries, entry)
    else:
        _check_completion(old, entry)
        entries = tuple(entry if one is old else one for one in catalog.entries)
    return Catalog(
        schema_version=1,
        experiment_id=catalog.experiment_id,
        root_id=catalog.root_id,
        checkpoint=catalog.checkpoint + 1,
        previous_sha256=sha256_bytes(render_sealed(catalog)),
        entries=entries,
        tree=_tree(entries),
    )


def _check_addition(catalog: Catalog, entry: CatalogEntry) -> None:
    if entry.key.experiment_id != catalog.experiment_id:
        raise BundleError(
            "catalog: a bundle of another experiment", got=entry.key, need=catalog.experiment_id
        )
    if entry.sequence != catalog.next_sequence:
        raise BundleError(f"catalog: sequence of {entry.key}", got=entry.sequence, need=catalog.next_sequence)
    used = next((one for one in catalog.entries if one.go_sha256 == entry.go_sha256), None)
    if used is not None:
        raise BundleError(
            f"the GO of {entry.key} is used",
            got=f"{entry.go_sha256} in {used.key}",
            need="a GO of its own",
            do="ask the reviewer again",
        )


def _check_completion(old: CatalogEntry, new: CatalogEntry) -> None:
    if (old.state, new.state) != ("preflight_only", "complete"):
        raise BundleError(
            f"catalog: {old.key} cannot change",
            got=f"{old.state} -> {new.state}",
            need="preflight_only -> complete",
        )
    same = (old.sequence, old.go_sha256, old.files[PREFLIGHT])
    if (new.sequence, new.go_sha256, new.files[PREFLIGHT]) != same:
        raise BundleError(f"catalog: {old.key} completes another preflight than its own")
