"""Inputs of a file audit as byte streams: files, folders and standard input, plain, gzip or zstd.

It knows names and compression, nothing of rows. Streams are read in pieces; only what must be sought in
(Parquet that came compressed or by a pipe) is copied to a temporary file on disk first.
"""

import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from fitladder.canonical import sha256_file
from fitladder.errors import InputRefused

__all__ = ["PARQUET_MAGIC", "STDIN", "Source", "find_sources", "open_source"]

STDIN = "-"
PARQUET_MAGIC = b"PAR1"
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet")
PACKED = ("", ".gz", ".zst")
COPY_BYTES = 1 << 20


@dataclass(frozen=True)
class Source:
    """One file to read; `label` is its name in messages and, where several are read, in row names."""

    path: Path
    label: str

    def sha256(self) -> str:
        """Digest of the file's bytes as they lie on disk, compressed if it is."""
        return sha256_file(self.path)

    def size_bytes(self) -> int:
        """Bytes on disk; 0 where the file cannot be asked."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


@contextmanager
def find_sources(targets: Sequence[str]) -> Iterator[tuple[Source, ...]]:
    """The files that the targets name, in the order given; those of a folder by their path in it.

    A folder stands for every file in it, at any depth, that ends in .jsonl, .ndjson, .json or .parquet, also
    with .gz or .zst; hidden files are left out. `-` is standard input, copied to a temporary file that is
    gone with this context. Raises InputRefused on a folder without such a file, or a file named twice.
    """
    found: list[Source] = []
    with tempfile.TemporaryDirectory(prefix="fitladder-audit-") as scratch:
        for target in targets:
            path = Path(target)
            if target == STDIN:
                copy = Path(scratch) / "stdin"
                with copy.open("wb") as out:
                    shutil.copyfileobj(sys.stdin.buffer, out, COPY_BYTES)
                found.append(Source(copy, "stdin"))
            elif path.is_dir():
                found.extend(_of_folder(path))
            else:
                found.append(Source(path, str(path)))
        seen: dict[Path, Source] = {}
        for source in found:
            if seen.setdefault(source.path.resolve(), source) is not source:
                raise InputRefused(f"{source.label} is named twice", need="each file once")
        yield tuple(found)


def _of_folder(folder: Path) -> list[Source]:
    endings = tuple(suffix + packed for suffix in SUFFIXES for packed in PACKED)
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.name.endswith(endings)
        and path.is_file()
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    )
    if not files:
        raise InputRefused(f"{folder} holds no file of rows", need=f"files that end in {', '.join(SUFFIXES)}")
    return [Source(path, str(path)) for path in files]


@contextmanager
def open_source(source: Source) -> Iterator[tuple[IO[bytes], bytes]]:
    """The decompressed stream of a source at its start, and its first 4 bytes, if so many.

    A stream that begins like Parquet can be sought in. Raises InputRefused on what cannot be read, also while
    the stream is read inside the context: a torn or damaged compressed file, or a disk error.
    """
    try:
        with source.path.open("rb") as raw:
            magic = raw.read(4)
            raw.seek(0)
            if magic[:2] == GZIP_MAGIC:
                packed: Any = gzip.GzipFile(fileobj=raw)
            elif magic == ZSTD_MAGIC:
                packed = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
            else:
                yield raw, magic
                return
            with io.BufferedReader(packed, COPY_BYTES) as stream, tempfile.TemporaryFile() as copy:
                head = stream.peek(4)[:4]
                if head == PARQUET_MAGIC:
                    shutil.copyfileobj(stream, copy, COPY_BYTES)
                    copy.seek(0)
                    yield copy, head
                else:
                    yield stream, head
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        got = getattr(error, "strerror", None) or str(error)[:200]
        raise InputRefused(f"{source.label} cannot be read", got=got) from error
