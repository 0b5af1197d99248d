"""Overlap of two paths: equal, or one inside the other, by whatever name.

Compared by spelling, by where symbolic links lead, by the identity of every existing folder above, and by
the place on the file system behind a mount (a bind mount of a subfolder has no other trace).
"""

import os
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

__all__ = ["Mount", "overlaps", "parse_mounts", "read_mounts"]

_Name = tuple[str, ...]


@dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mountinfo: what stands at `point` is `root` on the file system `device`."""

    device: str
    root: str
    point: str


def read_mounts() -> tuple[Mount, ...]:
    """This process's mounts; none where the platform does not list them."""
    try:
        return parse_mounts(Path("/proc/self/mountinfo").read_bytes().decode("utf-8", "surrogateescape"))
    except OSError:
        return ()


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """mountinfo (proc(5)): fields 3, 4 and 5, octal escapes undone."""

    def plain(word: str) -> str:
        return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal.group(1), 8)), word)

    fields = [line.split(" ") for line in text.splitlines() if line.strip()]
    return tuple(Mount(device=line[2], root=plain(line[3]), point=plain(line[4])) for line in fields)


def overlaps(left: str, right: str, mounts: tuple[Mount, ...]) -> bool:
    """Whether one absolute path is, contains or lies inside the other. Neither needs to exist."""
    if any(
        one[: len(other)] == other or other[: len(one)] == one
        for one in _names(left, mounts)
        for other in _names(right, mounts)
    ):
        return True
    return _reaches(left, right) or _reaches(right, left)


def _names(path: str, mounts: tuple[Mount, ...]) -> set[_Name]:
    """Every absolute name of a path, folded so that case and accents decide nothing."""
    spelled, real = os.path.normpath("/" + path.lstrip("/")), os.path.realpath(path)
    names = {("", *_fold(spelled)), ("", *_fold(real))}
    at = max(
        (mount for mount in mounts if PurePosixPath(real).is_relative_to(mount.point)),
        key=lambda mount: (len(PurePosixPath(mount.point).parts), mounts.index(mount)),
        default=None,
    )
    if at is not None:
        below = PurePosixPath(at.root) / PurePosixPath(real).relative_to(at.point)
        names.add((at.device, *_fold(str(below))))
    return names


def _fold(path: str) -> _Name:
    parts = PurePosixPath(path).parts[1:]
    return tuple(unicodedata.normalize("NFC", part).casefold() for part in parts)


def _reaches(inner: str, outer: str) -> bool:
    """Whether `outer`, an existing folder, is `inner` or one of the existing folders above it."""
    try:
        status = os.stat(outer)
    except OSError:
        return False
    chain = [PurePosixPath(inner), *PurePosixPath(inner).parents]
    return any(_identity(str(path)) == (status.st_dev, status.st_ino) for path in chain)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
