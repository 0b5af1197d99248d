"""How does a stage put its outputs down? Whole or not at all, and the same bytes each time.

It knows neither stages nor DVC; a clock and the order of a folder play no part.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from fitladder.errors import LineageError

__all__ = ["sync_folder", "write_file", "write_folder"]


def write_file(path: Path, data: bytes) -> None:
    """Replace `path` with these bytes in one step. Raises LineageError naming it."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(temporary, data)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as failure:
        raise LineageError(f"{path} cannot be written", got=failure.strerror or failure) from failure


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make `folder` hold exactly these files (relative POSIX names). Raises LineageError naming it."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for name, data in sorted(files.items()):
            path = temporary / name
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, data)
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        temporary.replace(folder)
        sync_folder(folder.parent)
    except OSError as failure:
        raise LineageError(f"{folder} cannot be written", got=failure.strerror or failure) from failure


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
