"""Check of objects in DVC's stores: each recorded object is there, and its bytes have its MD5.

Stores are folders in DVC 3's layout (`files/md5/ab/cdef...`): the cache, and remotes that are folders. DVC
does not hash a write-protected object again. Remotes elsewhere are left to `dvc push` and `dvc pull`.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fitladder.dvc_files.md5 import raw_md5
from fitladder.errors import LineageError

__all__ = ["Store", "check_objects", "read_listing"]


@dataclass(frozen=True)
class Store:
    """A folder that holds objects, and what to call it."""

    name: str
    folder: Path

    def path(self, md5: str) -> Path:
        """Path of an object, which need not exist."""
        return self.folder / "files" / "md5" / md5[:2] / md5[2:]


def _whole(store: Store, md5: str) -> bool:
    """Whether the store has the object. Raises LineageError with both hashes where it has other bytes."""
    path = store.path(md5)
    if not path.exists() and not path.is_symlink():
        return False
    found = raw_md5(path)
    if found != md5.removesuffix(".dir"):
        raise LineageError(
            f"{store.name}: object {path} is corrupt",
            got=f"MD5 {found}",
            need=md5,
            do="delete that object, then restore it: `dvc push` from, or `dvc fetch` to, the other store",
        )
    return True


def read_listing(stores: Sequence[Store], md5: str, *, where: str) -> dict[str, str]:
    """MD5 of every file of a recorded folder by relative path, from the first store that has its listing.

    Raises LineageError naming the object and every place looked in, or where it is corrupt.
    """
    for store in stores:
        if _whole(store, md5):
            rows = json.loads(store.path(md5).read_bytes())
            return {row["relpath"]: row["md5"] for row in rows}
    raise _missing(stores, md5, f"the listing of {where}")


def check_objects(
    needed: Iterable[tuple[str, str]], required: Sequence[Store], others: Sequence[Store] = ()
) -> None:
    """Hash objects in every store that has them, and require them in some.

    Args:
        needed: MD5 of each object, with the path that it belongs to.
        required: stores that must have every object.
        others: stores that may lack an object.

    Raises LineageError at the first that is missing or corrupt, naming the object and every place looked in.
    """
    for md5, owner in needed:
        having = [store for store in (*required, *others) if _whole(store, md5)]
        if any(store not in having for store in required):
            raise _missing((*required, *others), md5, owner, having)


def _missing(looked: Sequence[Store], md5: str, owner: str, having: Sequence[Store] = ()) -> LineageError:
    places = (
        f"{'there' if store in having else 'nothing'} in {store.name} at {store.path(md5)}"
        for store in looked
    )
    return LineageError(
        f"object {md5} of {owner} is missing",
        got="; ".join(places),
        need="the object in the cache and in the remote that it was pushed to",
        do="restore it with `dvc fetch` or `dvc push` from wherever it is whole; `dvc repro` makes again "
        "what is no bundle",
    )
