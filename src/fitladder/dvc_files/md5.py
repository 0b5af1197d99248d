"""MD5 of files and folders as DVC records them, computed from the bytes at each call.

DVC trusts a file that kept its size and time; nothing here does. Links and special files are refused, since
what they point to can change after the digest.
"""

import hashlib
import json
import os
from pathlib import Path

from fitladder.errors import LineageError

__all__ = ["differs_in_line_ends", "folder_md5s", "listing_md5", "raw_md5"]

_IGNORED = frozenset({"__pycache__", ".DS_Store"})  # as .dvcignore says of code folders


def raw_md5(path: Path) -> str:
    """MD5 of a file, or of a folder's listing with `.dir` behind it, as dvc.lock writes them.

    Raises LineageError where there is nothing, or a link or a special file there or below.
    """
    if path.is_symlink():
        raise LineageError(f"{path}", got=_link(path), need="bytes of its own", do="copy instead of linking")
    if path.is_dir():
        return listing_md5(folder_md5s(path))
    if not path.is_file():
        raise LineageError(f"{path} is missing", got="nothing" if not path.exists() else "no plain file")
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def folder_md5s(folder: Path) -> dict[str, str]:
    """MD5 of every file below a folder by relative POSIX path. Raises LineageError on links and specials."""
    found: dict[str, str] = {}
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                path = Path(entry.path)
                if entry.name in _IGNORED or entry.name.endswith(".pyc"):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                else:
                    found[path.relative_to(folder).as_posix()] = raw_md5(path)
    return found


def listing_md5(files: dict[str, str]) -> str:
    """The digest of a folder: MD5 of the JSON that DVC keeps as its listing object."""
    rows = [{"md5": md5, "relpath": name} for name, md5 in sorted(files.items())]
    return hashlib.md5(json.dumps(rows, sort_keys=True).encode(), usedforsecurity=False).hexdigest() + ".dir"


def differs_in_line_ends(path: Path, recorded_md5: str) -> bool:
    """Whether these bytes would be the recorded ones with LF for CRLF, or CRLF for LF."""
    data = path.read_bytes()
    plain = data.replace(b"\r\n", b"\n")
    both = (plain, plain.replace(b"\n", b"\r\n"))
    return any(hashlib.md5(text, usedforsecurity=False).hexdigest() == recorded_md5 for text in both)


def _link(path: Path) -> str:
    target = os.readlink(path)
    return f"a dangling link to {target}" if not path.exists() else f"a link to {target}"
