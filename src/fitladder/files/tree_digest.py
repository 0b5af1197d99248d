"""One digest over many files, by the scheme of the registered history; for bundles and model folders.

SHA-256 over `relative-path NUL file-sha256 newline`, sorted by path. Paths are POSIX style and relative.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from fitladder.errors import BundleError, BundleTampered, FitladderError
from fitladder.files.atomic import check_folder
from fitladder.files.file_record import FileRecord, file_record_at
from fitladder.frozen import Frozen, Sha256, Size

__all__ = ["Tree", "folder_tree", "tree_of", "tree_sha256"]


class Tree(Frozen):
    """How many files, their bytes together, and their digest."""

    files: Size
    bytes: Size
    sha256: Sha256


def tree_of(files: Mapping[str, FileRecord]) -> Tree:
    """The tree of files by relative path. Raises BundleError on a path that is absolute or climbs."""
    digest = hashlib.sha256()
    for path in sorted(files):
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or str(pure) != path or not path.isprintable():
            raise BundleError("a path that no tree can hold", got=ascii(path), need="a plain relative path")
        digest.update(path.encode() + b"\0" + files[path].sha256.encode() + b"\n")
    return Tree(
        files=len(files), bytes=sum(record.bytes for record in files.values()), sha256=digest.hexdigest()
    )


def folder_tree(folder: Path, *, error: type[FitladderError] = BundleTampered) -> Tree:
    """The tree of every file below a folder, hidden ones included. Raises `error` on links and specials."""
    check_folder(folder, error=error)
    records: dict[str, FileRecord] = {}
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                path = Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif entry.is_file(follow_symlinks=False):
                    name = path.relative_to(folder).as_posix()
                    records[name] = file_record_at(path, error=error, hard_links=True)
                else:
                    raise error(f"{path}", got="a link or special file", need="plain files and folders")
    return tree_of(records)


def tree_sha256(folder: Path, *, error: type[FitladderError] = BundleTampered) -> str:
    """Digest of `folder_tree`; what a registered local model folder is named by."""
    return folder_tree(folder, error=error).sha256
