"""Samples of a bundle whose stage-1 token ids are equal, found by SHA-256.

Equal samples point to one seed used for several samples. Samples without an id are left out.
"""

from fitladder.audit.columns import TerminationColumns
from fitladder.canonical import sha256_bytes
from fitladder.records.audit import EqualSamples

__all__ = ["equal_samples"]

ENDS = 64  # ids at either end that must agree before a whole list is hashed


def equal_samples(columns: TerminationColumns) -> tuple[EqualSamples, ...]:
    """Groups of two or more samples with equal stage-1 ids, in order of their first sample.

    The digest of a group is over the ids as little-endian int32.
    """
    likely: dict[tuple[int, bytes, bytes], list[int]] = {}
    for row in range(len(columns)):
        ids = columns.stage1_token_ids[row]
        if len(ids):
            likely.setdefault((len(ids), ids[:ENDS].tobytes(), ids[-ENDS:].tobytes()), []).append(row)
    groups: dict[str, list[int]] = {}
    for rows in likely.values():
        if len(rows) > 1:
            for row in rows:
                digest = sha256_bytes(columns.stage1_token_ids[row].astype("<i4").tobytes())
                groups.setdefault(digest, []).append(row)
    return tuple(
        EqualSamples(
            token_ids_sha256=digest,
            tokens=len(columns.stage1_token_ids[rows[0]]),
            samples=tuple(columns.name(row) for row in rows),
        )
        for digest, rows in sorted(groups.items(), key=lambda group: group[1][0])
        if len(rows) > 1
    )
