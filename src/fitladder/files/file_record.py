"""Size and SHA-256 of one file, as receipts, catalogs and trees record it; made here and nowhere else."""

import hashlib
import os
from pathlib import Path

from fitladder.canonical import sha256_bytes
from fitladder.errors import BundleTampered, FitladderError
from fitladder.files.atomic import open_plain
from fitladder.frozen import Frozen, Sha256, Size

__all__ = ["FileRecord", "file_record_at", "file_record_of"]


class FileRecord(Frozen):
    """Size in bytes and SHA-256 of a file's raw bytes."""

    bytes: Size
    sha256: Sha256


def file_record_of(data: bytes) -> FileRecord:
    """The record of a file with these bytes."""
    return FileRecord(bytes=len(data), sha256=sha256_bytes(data))


def file_record_at(
    path: Path, *, error: type[FitladderError] = BundleTampered, hard_links: bool = False
) -> FileRecord:
    """The record of a plain file, read once in blocks, so that no size is too large.

    `hard_links`: whether the file may have further names. Raises `error` naming the path on anything but a
    plain file.
    """
    with open_plain(path, error=error, hard_links=hard_links) as stream:
        size = os.fstat(stream.fileno()).st_size
        return FileRecord(bytes=size, sha256=hashlib.file_digest(stream, "sha256").hexdigest())
