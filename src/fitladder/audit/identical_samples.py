"""Which samples are the same list of ids? Found by hash, without decoding one of them.

Equal samples are a sign of one seed used for several draws. Rows without an id say nothing and are left out.
"""

from fitladder.audit.columns import TerminationColumns
from fitladder.canonical import sha256_bytes
from fitladder.records.audit import EqualSamples

__all__ = ["equal_samples"]

ENDS = 64  # ids at either end that must agree before a whole list is hashed


def equal_samples(columns: TerminationColumns) -> tuple[EqualSamples, ...]:
    """Groups of two or more samples with equal stage-1 ids, in bundle order; at least one id each."""
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
