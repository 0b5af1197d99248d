"""Record ids that may share a phase, and the digest of the seeds of its samples.

Two ids that a file system, a table or a reader could take for one are refused before anything is sampled.
"""

import re
import unicodedata
from collections.abc import Iterable

from fitladder.canonical import canonical_sha256
from fitladder.errors import BundleError, FitladderError

__all__ = ["check_record_ids", "fold_record_id", "seeds_sha256"]


_OTHER = re.compile(r"[^0-9a-z]+")


def fold_record_id(record_id: object) -> str:
    """What is left of an id once type, case, composition of accents and punctuation are lost.

    Two ids with one folding could overwrite each other in a file system, a table or a log that is keyed by
    value (1, 1.0, true and "1" are one). Letters outside ASCII stay themselves.
    """
    if isinstance(record_id, bool) or (isinstance(record_id, float) and record_id.is_integer()):
        record_id = int(record_id)
    plain = unicodedata.normalize("NFC", str(record_id)).casefold()
    return _OTHER.sub(lambda found: "_" if found.group().isascii() else ascii(found.group()), plain)


def check_record_ids(record_ids: Iterable[str], *, error: type[FitladderError] = BundleError) -> None:
    """No two ids may be one to a file system, a table or a reader. Raises `error` naming both."""
    seen: dict[str, str] = {}
    for record_id in record_ids:
        if not record_id.isprintable() or record_id != record_id.strip():
            raise error("record id", got=ascii(record_id), need="printable text without outer blanks")
        folded = fold_record_id(record_id)
        if folded in seen:
            raise error(
                "two record ids that could be taken for one", got=f"{seen[folded]!a} and {record_id!a}"
            )
        seen[folded] = record_id


def seeds_sha256(seeds: Iterable[tuple[str, int, int]]) -> str:
    """Digest of the stage-1 seeds, as (record id, sample index, seed of that sample) in row order."""
    return canonical_sha256([list(seed) for seed in seeds])
