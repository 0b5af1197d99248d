"""Reading of plain files, and durable writes: a file or folder is whole under its name, or absent.

Plain files only: a symbolic link, a second hard link, a pipe or a folder in a file's place is refused. Every
write of this package that must survive a crash goes through here: bytes are fsynced under a temporary name,
get their own name in one step, and the folder is fsynced. It knows nothing of what the bytes mean.
"""

import contextlib
import io
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from fitladder.errors import BundleError, BundleTampered, FitladderError, LineageError

__all__ = [
    "MAX_FILE_BYTES",
    "check_folder",
    "create_durably",
    "make_folder",
    "open_plain",
    "read_plain",
    "replace_file",
    "sync_folder",
    "temporary_name",
    "write_new",
    "write_output",
    "write_output_folder",
]

MAX_FILE_BYTES = 1 << 32
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def temporary_name(name: str) -> str:
    """The one name under which `name` may exist before it is complete."""
    return f".{name}.tmp"


def check_folder(path: Path, *, error: type[FitladderError] = BundleTampered) -> None:
    """Check that `path` is a real folder, not a link to one. Raises `error` naming the path."""
    try:
        mode = path.lstat().st_mode
    except OSError as failure:
        raise error(f"{path} cannot be read", got=failure.strerror, need="a folder") from failure
    if not stat.S_ISDIR(mode):
        raise error(f"{path}", got=_kind(mode), need="a folder")


@contextlib.contextmanager
def open_plain(
    path: Path, *, error: type[FitladderError] = BundleTampered, hard_links: bool = False
) -> Iterator[io.BufferedReader]:
    """A plain file, open for reading bytes, and certainly the one that has this name.

    Args:
        path: never followed where it is a symbolic link.
        error: class raised, naming the path, on anything else and where it cannot be read.
        hard_links: whether a file with further names may be read, as model caches have them.
    """
    try:
        before = path.lstat()
        _check_plain(path, before, error, hard_links)
        with open(os.open(path, _READ), "rb") as stream:
            status = os.fstat(stream.fileno())
            if (status.st_dev, status.st_ino) != (before.st_dev, before.st_ino):
                raise error(f"{path} was exchanged while it was read")
            yield stream
    except OSError as failure:
        raise error(f"{path} cannot be read", got=failure.strerror, need="a plain file") from failure


def read_plain(
    path: Path, *, max_bytes: int = MAX_FILE_BYTES, error: type[FitladderError] = BundleTampered
) -> bytes:
    """The raw bytes of a plain file with one name, at most `max_bytes`. Raises `error` naming the path."""
    with open_plain(path, error=error) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > max_bytes:
            raise error(f"{path}", got=f"{size} bytes", need=f"at most {max_bytes}")
        return stream.read()


def _check_plain(path: Path, status: os.stat_result, error: type[FitladderError], hard_links: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise error(f"{path}", got=_kind(status.st_mode), need="a plain file of its own")
    if status.st_nlink != 1 and not hard_links:
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
        check_folder(path)
        sync_folder(path.parent)
    except OSError as failure:
        raise BundleError(f"{path} cannot be created", got=failure.strerror) from failure


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_durably(path: Path, data: bytes) -> None:
    """Create a file that does not exist yet and fsync its bytes; its name is durable after `sync_folder`.

    The primitive below every other write. Raises OSError, FileExistsError where anything has that name.
    """
    with open(os.open(path, _CREATE, 0o644), "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def write_new(path: Path, data: bytes, *, error: type[FitladderError] = BundleError) -> None:
    """Create `path` with these bytes, durably: whole, or not there. Never overwrites.

    Linked from its temporary name, which fails where `path` exists; what was there stays as it was. Raises
    `error`, also where an interrupted write has left the temporary name.
    """
    _write(path, data, lambda temporary: _take_name(temporary, path), error)


def replace_file(path: Path, data: bytes, *, error: type[FitladderError] = BundleError) -> None:
    """As `write_new`, but the old file, if any, is exchanged for the new one in one step."""
    _write(path, data, lambda temporary: temporary.replace(path), error)


def write_output(path: Path, data: bytes, *, error: type[FitladderError] = LineageError) -> None:
    """Replace a file that can be made again, creating its folders; an interrupted write is cleared first.

    For outputs with one writer at a time: stages, commands, fetched inputs. Raises `error` naming the path.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            raise error(f"{path}", got=_kind(path.stat().st_mode), need="a plain file, or none yet")
        path.with_name(temporary_name(path.name)).unlink(missing_ok=True)
    except OSError as failure:
        raise error(f"{path} cannot be written", got=failure.strerror or failure) from failure
    replace_file(path, data, error=error)


def write_output_folder(
    folder: Path, files: Mapping[str, bytes], *, error: type[FitladderError] = LineageError
) -> None:
    """Make `folder` hold exactly these files, by relative POSIX name; an older folder is exchanged.

    For outputs that can be made again, as `write_output`. Raises `error` naming the folder.
    """
    temporary = folder.with_name(temporary_name(folder.name))
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for name, data in sorted(files.items()):
            path = temporary / name
            path.parent.mkdir(parents=True, exist_ok=True)
            create_durably(path, data)
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        temporary.replace(folder)
        sync_folder(folder.parent)
    except OSError as failure:
        raise error(f"{folder} cannot be written", got=failure.strerror or failure) from failure


def _take_name(temporary: Path, path: Path) -> None:
    os.link(temporary, path, follow_symlinks=False)
    temporary.unlink()


def _write(path: Path, data: bytes, publish: Callable[[Path], object], error: type[FitladderError]) -> None:
    temporary = path.with_name(temporary_name(path.name))
    try:
        create_durably(temporary, data)
    except FileExistsError as failure:  # of another writer, who may live: it stays
        raise error(f"{temporary} exists", need="no rest of an interrupted write") from failure
    except OSError as failure:
        _discard(temporary)
        raise error(f"{path} cannot be written", got=failure.strerror or failure) from failure
    try:
        publish(temporary)
        sync_folder(path.parent)
    except OSError as failure:
        _discard(temporary)
        if isinstance(failure, FileExistsError):
            raise error(f"{path} exists", need="a place where nothing stands") from failure
        raise error(f"{path} cannot be written", got=failure.strerror or failure) from failure


def _discard(temporary: Path) -> None:
    with contextlib.suppress(OSError):
        temporary.unlink()
