"""The catalog: checkpointed inventory of all bundles of one experiment.

Each checkpoint names the one before it by SHA-256. `store.catalog` holds the rule of its changes.
"""

from typing import Literal, Self

from pydantic import model_validator

from fitladder.files.file_record import FileRecord
from fitladder.files.tree_digest import Tree, tree_of
from fitladder.frozen import Count, Frozen, Identifier, Sha256, Size
from fitladder.records.bundle_key import BundleKey
from fitladder.records.layout import BUNDLE_FILES, PREFLIGHT, bundle_folder

__all__ = ["Catalog", "CatalogEntry", "EntryState", "catalog_tree"]

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
        return bundle_folder(self.key, self.attempt)


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
        if self.tree != catalog_tree(self.entries):
            raise ValueError(
                f"tree: got {self.tree.sha256}, the entries give {catalog_tree(self.entries).sha256}"
            )
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


def catalog_tree(entries: tuple[CatalogEntry, ...]) -> Tree:
    """Tree over the files of all entries, by their path below the root."""
    return tree_of(
        {f"{entry.relative_path}/{name}": record for entry in entries for name, record in entry.files.items()}
    )
