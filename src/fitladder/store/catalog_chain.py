"""The catalog on disk as the end of an unbroken chain of legal steps, read, and extended by one step.

It reads and writes the catalog and its old checkpoints; verify_root.py compares them with the bundles.
"""

import os
from itertools import pairwise
from pathlib import Path

from fitladder.canonical import sha256_bytes
from fitladder.errors import BundleError, BundleTampered
from fitladder.files.atomic import check_folder, make_folder, read_plain, replace_file, write_new
from fitladder.files.sealed_json import parse_sealed, render_sealed
from fitladder.records.catalog import Catalog
from fitladder.records.layout import CATALOG, CHECKPOINTS, checkpoint_name
from fitladder.store.catalog import advance

__all__ = ["load_chain", "write_catalog"]

MAX_CATALOG_BYTES = 16 << 20
NO_STEP = "not one legal step from the checkpoint before"


def load_chain(root: Path) -> Catalog:
    """The current catalog, its whole chain checked step by step. Raises BundleTampered naming the file."""
    path = root / CATALOG
    current, head = _load(path)
    old = {name: root / CHECKPOINTS / name for name in _checkpoint_names(root)}
    # A write may have died between keeping the old checkpoint and exchanging the current one.
    need = [checkpoint_name(number) for number in range(current.checkpoint)]
    spare = checkpoint_name(current.checkpoint)
    if spare in old and _load(old.pop(spare))[1] != head:
        raise BundleTampered(f"{root / CHECKPOINTS / spare} differs from {path}", need="the same bytes")
    if sorted(old) != need:
        odd = sorted(set(old) ^ set(need))[0]
        raise BundleTampered(
            f"{root / CHECKPOINTS / odd}",
            got="missing" if odd in need else "there",
            need=f"checkpoints 0 to {current.checkpoint - 1}",
        )
    chain = [(old[name], *_load(old[name])) for name in need] + [(path, current, head)]
    for (_, before, data), (where, after, _) in pairwise(chain):
        _check_step(where, before, data, after)
    first_path, first, _ = chain[0]
    if first.entries or first.checkpoint:
        raise BundleTampered(f"{first_path} is no first checkpoint", got=f"{len(first.entries)} entries")
    return current


def _load(path: Path) -> tuple[Catalog, bytes]:
    data = read_plain(path, max_bytes=MAX_CATALOG_BYTES)
    return parse_sealed(Catalog, data, where=str(path)), data


def _checkpoint_names(root: Path) -> list[str]:
    folder = root / CHECKPOINTS
    if not os.path.lexists(folder):
        return []
    check_folder(folder)
    return sorted(path.name for path in folder.iterdir())


def _check_step(where: Path, before: Catalog, data: bytes, after: Catalog) -> None:
    found = sha256_bytes(data)
    if after.previous_sha256 != found:
        raise BundleTampered(f"{where}: previous_sha256", got=after.previous_sha256, need=found)
    changed = [entry for entry in after.entries if entry not in before.entries]
    try:
        legal = len(changed) == 1 and advance(before, changed[0]) == after
    except BundleError as failure:
        raise BundleTampered(f"{where}: {NO_STEP}", got=failure) from failure
    if not legal:
        raise BundleTampered(f"{where}: {NO_STEP}", got=f"{len(changed)} changed entries")


def write_catalog(root: Path, catalog: Catalog) -> None:
    """Make `catalog` the current one, keeping its predecessor. Needs the root's lock. Raises BundleError."""
    path = root / CATALOG
    data = render_sealed(catalog)
    if catalog.checkpoint == 0:
        write_new(path, data)
        return
    current, head = _load(path)
    if sha256_bytes(head) != catalog.previous_sha256:
        raise BundleTampered(f"{path} moved meanwhile", got=sha256_bytes(head), need=catalog.previous_sha256)
    make_folder(root / CHECKPOINTS)
    kept = root / CHECKPOINTS / checkpoint_name(current.checkpoint)
    if not os.path.lexists(kept):
        write_new(kept, head)
    elif read_plain(kept, max_bytes=MAX_CATALOG_BYTES) != head:
        raise BundleTampered(f"{kept} differs from {path}", need="the same bytes")
    replace_file(path, data)
