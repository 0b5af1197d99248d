"""Which record ids may stand side by side, and which digest do the seeds of all samples have?

Two ids that a file system, a table or a reader could take for one are refused before anything is sampled.
"""

import unicodedata
from collections.abc import Iterable

from fitladder.canonical import canonical_sha256
from fitladder.errors import BundleError, FitladderError

__all__ = ["check_record_ids", "seeds_sha256"]


def _fold(record_id: str) -> str:
    """What two ids must not share: accents composed, case and every sign but `-` `.` `:` set aside."""
    plain = unicodedata.normalize("NFC", record_id).casefold()
    return "".join(sign if sign.isalnum() or sign in "-.:" else "_" for sign in plain)


def check_record_ids(record_ids: Iterable[str], *, error: type[FitladderError] = BundleError) -> None:
    """No two ids may be one to a file system, a table or a reader. Raises `error` naming both."""
    seen: dict[str, str] = {}
    for record_id in record_ids:
        if not record_id.isprintable() or record_id != record_id.strip():
            raise error("record id", got=ascii(record_id), need="printable text without outer blanks")
        folded = _fold(record_id)
        if folded in seen:
            raise error(
                "two record ids that could be taken for one", got=f"{seen[folded]!a} and {record_id!a}"
            )
        seen[folded] = record_id


def seeds_sha256(seeds: Iterable[tuple[str, int, int]]) -> str:
    """Digest of the stage-1 seeds, as (record id, sample index, seed of that sample) in row order."""
    return canonical_sha256([list(seed) for seed in seeds])
