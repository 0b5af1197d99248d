"""Size and SHA-256 of one file, as receipts, catalogs and trees record it."""

from fitladder.frozen import Frozen, Sha256, Size

__all__ = ["FileRecord"]


class FileRecord(Frozen):
    """Size and SHA-256 of a file's raw bytes."""

    bytes: Size
    sha256: Sha256
