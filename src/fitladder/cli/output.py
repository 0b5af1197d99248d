"""How does a command write a file that it can make again? Whole or not at all, over an older one."""

from pathlib import Path

from fitladder.canonical import sha256_bytes
from fitladder.errors import UsageError
from fitladder.files.atomic import replace_file

__all__ = ["write_output"]


def write_output(path: Path, data: bytes) -> str:
    """Write `data`, its folder too where that is missing. Returns its SHA-256; raises UsageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise UsageError(f"{path} cannot be written", got=failure.strerror) from failure
    replace_file(path, data)
    return sha256_bytes(data)
