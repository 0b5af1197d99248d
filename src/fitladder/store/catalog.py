"""Changes of a catalog, the list of the bundles in an experiment's root.

A chain of checkpoints: each names the one before it by SHA-256, and differs from it by one new
preflight-only entry or by one entry that became complete. Pure; catalog_chain.py reads and writes it.
"""

from fitladder.canonical import sha256_bytes
from fitladder.errors import BundleError
from fitladder.files.sealed_json import render_sealed
from fitladder.records.catalog import Catalog, CatalogEntry, catalog_tree
from fitladder.records.layout import PREFLIGHT

__all__ = ["advance", "first_catalog"]


def first_catalog(experiment_id: str, root_id: str) -> Catalog:
    """The empty catalog of a fresh root."""
    return Catalog(
        schema_version=1,
        experiment_id=experiment_id,
        root_id=root_id,
        checkpoint=0,
        previous_sha256=None,
        entries=(),
        tree=catalog_tree(()),
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
        tree=catalog_tree(entries),
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
