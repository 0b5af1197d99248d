"""Which bundles does an experiment's root hold, and how may that list change?

A chain of checkpoints: each names the one before it by SHA-256, and differs from it by one new
preflight-only entry or by one entry that became complete. Pure; chain.py reads and writes it.
"""

from typing import Literal, Self

from pydantic import model_validator

from fitladder.bundles.layout import BUNDLE_FILES, PREFLIGHT, place_of
from fitladder.bundles.schemas import FileRecord, Size
from fitladder.bundles.sealed import render_sealed
from fitladder.bundles.tree import Tree, tree_of
from fitladder.canonical import sha256_bytes
from fitladder.errors import BundleError
from fitladder.protocol.experiment import Count, Frozen, Identifier, Sha256
from fitladder.protocol.key import BundleKey

__all__ = ["Catalog", "CatalogEntry", "EntryState", "advance", "first_catalog"]

EntryState = Literal["preflight_only", "complete"]


class CatalogEntry(Frozen):
    """One bundle: its files by name, all four once it is complete."""

    key: BundleKey
    attempt: Count = 1
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

    @property
    def relative_path(self) -> str:
        """Its folder below the root."""
        return place_of(self.key, self.attempt)


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
        for number, entry in enumerate(self.entries):
            before = [one for one in self.entries[:number] if one.key == entry.key]
            if entry.attempt != len(before) + 1 or any(one.state == "complete" for one in before):
                raise ValueError(f"entries: {entry.key} stands twice and is no next attempt")
        if any(entry.key.experiment_id != self.experiment_id for entry in self.entries):
            raise ValueError(f"entries: a bundle of another experiment than {self.experiment_id}")
        goes = [entry.go_sha256 for entry in self.entries]
        if len(set(goes)) != len(goes):
            raise ValueError("entries: a GO stands twice; it is used once")
        if self.tree != _tree(self.entries):
            raise ValueError(f"tree: got {self.tree.sha256}, the entries give {_tree(self.entries).sha256}")
        return self

    def entry(self, key: BundleKey) -> CatalogEntry | None:
        """The newest attempt at this phase, None where there is none."""
        return next((entry for entry in reversed(self.entries) if entry.key == key), None)

    def attempt(self, key: BundleKey, attempt: int) -> CatalogEntry | None:
        """One attempt at this phase, None where there is none of that number."""
        return next((one for one in self.entries if (one.key, one.attempt) == (key, attempt)), None)

    @property
    def next_sequence(self) -> int:
        """The sequence that the next preflight must have."""
        return len(self.entries)


def _tree(entries: tuple[CatalogEntry, ...]) -> Tree:
    return tree_of(
        {f"{entry.relative_path}/{name}": record for entry in entries for name, record in entry.files.items()}
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
    old = catalog.attempt(entry.key, entry.attempt)
    if old is None:
        if entry.state != "preflight_only":
            raise BundleError(f"catalog: {entry.key} appears as complete", need="its preflight first")
        _check_addition(catalog, entry)
        entries = (*catalog.entries, entry)
    else:
        _check_completion(catalog, old, entry)
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
    newest = catalog.entry(entry.key)
    if newest is not None and newest.state == "complete":
        raise BundleError(
            f"catalog: {entry.key} is complete", got=f"attempt {entry.attempt}", need="no other bundle of it"
        )
    if entry.attempt != (newest.attempt if newest else 0) + 1:
        raise BundleError(
            f"catalog: attempt at {entry.key}", got=entry.attempt, need=(newest.attempt if newest else 0) + 1
        )
    used = next((one for one in catalog.entries if one.go_sha256 == entry.go_sha256), None)
    if used is not None:
        raise BundleError(
            f"the GO of {entry.key} is used",
            got=f"{entry.go_sha256} in {used.key}",
            need="a GO of its own",
            do="ask the reviewer again",
        )


def _check_completion(catalog: Catalog, old: CatalogEntry, new: CatalogEntry) -> None:
    if catalog.entry(old.key) is not old:
        raise BundleError(f"catalog: {old.relative_path} cannot be completed", need="the newest attempt")
    if (old.state, new.state) != ("preflight_only", "complete"):
        raise BundleError(
            f"catalog: {old.key} cannot change",
            got=f"{old.state} -> {new.state}",
            need="preflight_only -> complete",
        )
    same = (old.sequence, old.go_sha256, old.files[PREFLIGHT])
    if (new.sequence, new.go_sha256, new.files[PREFLIGHT]) != same:
        raise BundleError(f"catalog: {old.key} completes another preflight than its own")
