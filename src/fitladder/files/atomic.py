"""How is one file read so that nothing else can stand in for it, and written so that it is whole or absent?

Plain files only: a symbolic link, a second hard link, a pipe or a folder in a file's place is refused. It
knows nothing of what the bytes mean.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from fitladder.errors import BundleError, BundleTampered, FitladderError

__all__ = [
    "MAX_FILE_BYTES",
    "check_folder",
    "make_folder",
    "read_plain",
    "replace_file",
    "temporary_name",
    "write_new",
]

MAX_FILE_BYTES = 1 << 32
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def temporary_name(name: str) -> str:
    """The one name under which `name` may exist before it is complete."""
    return f".{name}.tmp"


def check_folder(path: Path, *, error: type[FitladderError] = BundleTampered) -> None:
    """A real folder, not a link to one. Raises `error` naming the path."""
    try:
        mode = path.lstat().st_mode
    except OSError as failure:
        raise error(f"{path} cannot be read", got=failure.strerror, need="a folder") from failure
    if not stat.S_ISDIR(mode):
        raise error(f"{path}", got=_kind(mode), need="a folder")


def read_plain(
    path: Path, *, max_bytes: int = MAX_FILE_BYTES, error: type[FitladderError] = BundleTampered
) -> bytes:
    """The raw bytes of a plain file with one name. Raises `error` naming the path on anything else."""
    try:
        before = path.lstat()
        _check_plain(path, before, error)
        with open(os.open(path, _READ), "rb") as stream:
            status = os.fstat(stream.fileno())
            if (status.st_dev, status.st_ino) != (before.st_dev, before.st_ino):
                raise error(f"{path} was exchanged while it was read")
            if status.st_size > max_bytes:
                raise error(f"{path}", got=f"{status.st_size} bytes", need=f"at most {max_bytes}")
            return stream.read()
    except OSError as failure:
        raise error(f"{path} cannot be read", got=failure.strerror, need="a plain file") from failure


def _check_plain(path: Path, status: os.stat_result, error: type[FitladderError]) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise error(f"{path}", got=_kind(status.st_mode), need="a plain file of its own")
    if status.st_nlink != 1:
        raise error(
            f"{path}",
            got=f"{status.st_nlink} names for one file",
            need="one",
            do="copy it instead of linking",
        )


def _kind(mode: int) -> str:
    for name, test in (
        ("a symbolic link", stat.S_ISLNK),
        ("a folder", stat.S_ISDIR),
        ("a pipe", stat.S_ISFIFO),
        ("a plain file", stat.S_ISREG),
    ):
        if test(mode):
            return name
    return "a special file"


def make_folder(path: Path) -> None:
    """Create one folder durably; an existing real one is fine. Raises BundleError."""
    try:
        path.mkdir(exist_ok=True)
    except OSError as failure:
        raise BundleError(f"{path} cannot be created", got=failure.strerror) from failure
    check_folder(path)
    _sync_folder(path.parent)


def write_new(path: Path, data: bytes) -> None:
    """Create `path` with these bytes, durably: whole, or not there. Never overwrites.

    Written under the temporary name, fsynced, linked to its own name (which fails where that exists), then
    the folder is fsynced. Raises BundleError; what was there stays as it was.
    """
    _write(path, data, lambda temporary: _take_name(temporary, path))


def replace_file(path: Path, data: bytes) -> None:
    """As `write_new`, but the old file, if any, is exchanged for the new one in one step."""
    _write(path, data, lambda temporary: temporary.replace(path))


def _take_name(temporary: Path, path: Path) -> None:
    os.link(temporary, path, follow_symlinks=False)
    temporary.unlink()


def _write(path: Path, data: bytes, publish: Callable[[Path], object]) -> None:
    temporary = path.with_name(temporary_name(path.name))
    try:
        descriptor = os.open(temporary, _CREATE, 0o644)
    except FileExistsError as failure:
        raise BundleError(f"{temporary} exists", need="no rest of an interrupted write") from failure
    except OSError as failure:
        raise BundleError(f"{temporary} cannot be created", got=failure.strerror or failure) from failure
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        publish(temporary)
        _sync_folder(path.parent)
    except OSError as failure:
        temporary.unlink(missing_ok=True)
        if isinstance(failure, FileExistsError):
            raise BundleError(f"{path} exists", need="a place where nothing stands") from failure
        raise BundleError(f"{path} cannot be written", got=failure.strerror or failure) from failure


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
