"""Byte identity of a copy of a root with the catalog of a root that was verified.

A copy whose every file is the verified one needs no second audit of its rows; names, sizes and digests are
compared, and the catalog's whole chain is read.
"""

from pathlib import Path

from fitladder.canonical import sha256_bytes
from fitladder.errors import BundleTampered
from fitladder.files.atomic import read_plain
from fitladder.records.catalog import Catalog
from fitladder.records.layout import CATALOG, CHECKPOINTS
from fitladder.store.catalog_chain import load_chain

__all__ = ["check_copy"]


def check_copy(folder: Path, catalog: Catalog) -> None:
    """Refuse a copy that holds other files or other bytes than `catalog` names.

    `catalog`: of a verified root, as it is or as it was at an earlier checkpoint. Raises BundleTampered
    naming the file, what was found and what is needed.
    """
    if load_chain(folder) != catalog:
        raise BundleTampered(f"{folder / CATALOG} is not the verified root's", need=catalog.tree.sha256)
    need = {
        f"{entry.relative_path}/{name}": record
        for entry in catalog.entries
        for name, record in entry.files.items()
    }
    found = {
        name
        for path in folder.rglob("*")
        if (path.is_symlink() or not path.is_dir())
        and (name := path.relative_to(folder).as_posix()) != CATALOG
        and not name.startswith(f"{CHECKPOINTS}/")
    }
    for name in sorted(found ^ need.keys()):
        raise BundleTampered(
            f"{folder / name} " + ("is missing" if name in need else "belongs to no bundle"),
            got="nothing" if name in need else "a file",
            need="the verified root's files and no other",
        )
    for name, record in need.items():
        data = read_plain(folder / name)
        if len(data) != record.bytes:
            raise BundleTampered(
                f"{folder / name}: size", got=f"{len(data)} bytes", need=f"{record.bytes} bytes"
            )
        if (digest := sha256_bytes(data)) != record.sha256:
            raise BundleTampered(f"{folder / name}: SHA-256", got=digest, need=record.sha256)
