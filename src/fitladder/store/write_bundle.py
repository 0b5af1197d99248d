"""Writing a phase to its root: preflight, samples, engine metadata, receipt, then the catalog.

Each file is whole or absent, nothing is overwritten, and whatever a crash leaves reads as preflight-only
or is refused. Only the holder of the root writes.
"""

import os
from dataclasses import replace
from pathlib import Path

from fitladder.canonical import sha256_bytes
from fitladder.errors import BundleError, BundleTampered, EngineFailed
from fitladder.files.atomic import make_folder, read_plain, write_new
from fitladder.files.file_record import file_record_of
from fitladder.files.sealed_json import render_sealed
from fitladder.records.binding import Binding
from fitladder.records.bundle_key import BundleKey
from fitladder.records.catalog import Catalog, CatalogEntry
from fitladder.records.layout import ENGINE, PREFLIGHT, RECEIPT, SAMPLES
from fitladder.records.preflight import EngineMeta, Preflight
from fitladder.sampling.parquet import COLUMNS, read_columns
from fitladder.sampling.row_rules import check_rows
from fitladder.store.catalog import advance
from fitladder.store.catalog_chain import load_chain, write_catalog
from fitladder.store.held_root import HeldRoot
from fitladder.store.receipt import build_receipt
from fitladder.store.resume import check_resumable
from fitladder.store.verify_bundle import VerifiedBundle, verify_bundle, verify_preflight
from fitladder.store.verify_root import VerifiedRoot, inspect_root

__all__ = ["commit_bundle", "reconcile", "reconciled_root", "write_preflight"]


def reconcile(held: HeldRoot) -> Catalog:
    """Compare disk and catalog both ways, and write catalog entries that an interrupted writer left out.

    Returns the current catalog. Raises BundlePartial, BundleTampered or BundleError on anything else.
    """
    return reconciled_root(held).catalog


def reconciled_root(held: HeldRoot, expected_binding: Binding | None = None) -> VerifiedRoot:
    """`reconcile`, and the whole root as it was verified for it; its catalog is the current one.

    Raises BindingChanged too, before anything is written, where a bundle was made under another generation
    binding than `expected_binding`.
    """
    held.lock.check()
    found = inspect_root(held.path, held.experiment_id, expected_binding)
    catalog = found.catalog
    if catalog.root_id != held.root_id:
        raise BundleError(f"{held.path}: catalog of another root", got=catalog.root_id, need=held.root_id)
    for entry in found.pending_entries:
        catalog = _step(held, catalog, entry)
    return replace(found, catalog=catalog, pending_entries=())


def write_preflight(held: HeldRoot, preflight: Preflight, verified: VerifiedRoot | None = None) -> Catalog:
    """Write a phase's preflight and its catalog entry. From here on the GO is used.

    `verified`: what `reconciled_root` found under this very lock; the catalog must still be its. Left out,
    the root is verified now.

    An interrupted phase is resumed in a folder of its own, by a preflight that names every earlier one in
    `resumes`; those stay as they are. Raises BundleError where the phase is complete or was begun by one that
    is not named, the GO was used, or sequence, root or experiment are not the catalog's; BindingChanged
    naming the field, old and new, where it resumes another identity.
    """
    found = reconciled_root(held) if verified is None else _unmoved(held, verified)
    catalog = found.catalog
    if preflight.root_id != held.root_id:
        raise BundleError("preflight: root_id", got=preflight.root_id, need=held.root_id)
    _check_begins(found, preflight)
    data = render_sealed(preflight)
    entry = CatalogEntry(
        key=preflight.key,
        attempt=preflight.attempt,
        sequence=preflight.sequence,
        state="preflight_only",
        go_sha256=preflight.go_sha256,
        files={PREFLIGHT: file_record_of(data)},
    )
    advance(catalog, entry)  # refuses before anything is written
    folder = held.path / entry.relative_path
    make_folder(folder.parent)
    make_folder(folder)
    write_new(folder / PREFLIGHT, data)
    return _step(held, catalog, entry)


def _check_begins(found: VerifiedRoot, preflight: Preflight) -> None:
    """A phase never begun, or the next attempt at one that was interrupted."""
    key = preflight.key
    if any(one.key == key for one in found.bundles):
        raise BundleError(f"{key} has its receipt already", need="a phase without one")
    earlier = [one for one in found.preflights if one.key == key]
    digests = tuple(one.file.sha256 for one in earlier)
    if preflight.resumes != digests:
        raise BundleError(
            f"{key} has a preflight already" if earlier else f"{key} was never begun",
            got=", ".join(preflight.resumes) or "a preflight that resumes nothing",
            need=", ".join(digests) or "one that resumes nothing",
            do=f"ask for another attempt: `fitladder launch {key.experiment_id} --phase {key.phase} "
            f"--budget {key.thinking_budget_tokens} --resume`"
            if earlier
            else None,
        )
    if earlier:
        check_resumable(earlier[-1].preflight, preflight)


def commit_bundle(
    held: HeldRoot,
    key: BundleKey,
    samples_source: Path,
    engine: EngineMeta,
    *,
    samples_sha256: str,
    noted_at_s: int,
) -> VerifiedBundle:
    """Write samples, engine metadata and receipt next to the newest preflight of `key`; complete the catalog.

    Other bundles are not read: they were verified when the lock was taken, and are again at the next border.
    `samples_source`: the file of `render_samples` bytes that the engine process left; `samples_sha256`: the
    digest that it told. Everything is checked before the first byte is written. Raises EngineFailed naming
    both digests where they differ, BundleError or BundleTampered; the source is left as it is.
    """
    catalog = _catalog_before_commit(held, key)
    entry = catalog.entry(key)
    if entry is None or entry.state != "preflight_only":
        raise BundleError(
            f"{key} cannot be completed", got=entry.state if entry else "nothing", need="preflight_only"
        )
    folder = held.path / entry.relative_path
    begun = verify_preflight(folder, key)
    if begun.file != entry.files[PREFLIGHT]:
        raise BundleTampered(
            f"{folder / PREFLIGHT} is not the catalog's",
            got=begun.file.sha256,
            need=entry.files[PREFLIGHT].sha256,
        )
    preflight = begun.preflight
    samples = read_plain(samples_source, error=BundleError)
    if (found_sha256 := sha256_bytes(samples)) != samples_sha256:
        raise EngineFailed(
            f"{samples_source} is not what the engine reported",
            got=f"SHA-256 {found_sha256}",
            need=f"the engine's {samples_sha256}",
        )
    table = read_columns(samples, COLUMNS, where=str(samples_source))
    for what, named in (("samples", table.key), ("engine metadata", engine.key)):
        if named != key:
            raise BundleError(f"{what} of another bundle", got=named, need=key)
    check_rows(table, preflight, where=str(samples_source))
    data = {SAMPLES: samples, ENGINE: render_sealed(engine)}
    files = {
        PREFLIGHT: entry.files[PREFLIGHT],
        **{name: file_record_of(content) for name, content in data.items()},
    }
    receipt = build_receipt(preflight, table, engine, files, noted_at_s=noted_at_s)
    data[RECEIPT] = render_sealed(receipt)
    for name, content in data.items():
        held.lock.check()
        write_new(folder / name, content)
    bundle = verify_bundle(folder, key)
    complete = entry.model_copy(update={"state": "complete", "files": bundle.files})
    _step(held, catalog, complete)
    return bundle


def _unmoved(held: HeldRoot, verified: VerifiedRoot) -> VerifiedRoot:
    """`verified`, where the catalog on disk, its whole chain included, is still the one it was found with."""
    held.lock.check()
    catalog = load_chain(held.path)
    if catalog != verified.catalog or verified.root != held.path:
        raise BundleTampered(
            f"{held.path}: the catalog moved under its lock",
            got=f"checkpoint {catalog.checkpoint}, tree {catalog.tree.sha256}",
            need=f"checkpoint {verified.catalog.checkpoint}, tree {verified.catalog.tree.sha256}",
        )
    return verified


def _catalog_before_commit(held: HeldRoot, key: BundleKey) -> Catalog:
    """The current catalog; reconciled first where it does not list the newest attempt as it lies on disk."""
    held.lock.check()
    catalog = load_chain(held.path)
    entry = catalog.entry(key)
    if entry is None or os.listdir(held.path / entry.relative_path) != [PREFLIGHT]:
        return reconcile(held)
    if catalog.root_id != held.root_id:
        raise BundleError(f"{held.path}: catalog of another root", got=catalog.root_id, need=held.root_id)
    return catalog


def _step(held: HeldRoot, catalog: Catalog, entry: CatalogEntry) -> Catalog:
    following = advance(catalog, entry)
    held.lock.check()
    write_catalog(held.path, following)
    return following
