"""Search for runs of token ids: a marker is found whole, never known by its first id alone."""

from collections.abc import Container, Sequence

import numpy as np

from fitladder.records.sample import TokenIds

__all__ = ["common_prefix", "find_first", "find_run"]


def find_first(token_ids: Sequence[int], wanted: Container[int]) -> int | None:
    """Index of the first id that is one of `wanted`, or None."""
    return next((index for index, token in enumerate(token_ids) if token in wanted), None)


def common_prefix(token_ids: Sequence[int] | TokenIds, run: Sequence[int]) -> int:
    """How many leading ids `token_ids` and `run` have in common."""
    shorter = min(len(token_ids), len(run))
    differs = np.flatnonzero(np.asarray(token_ids[:shorter]) != np.asarray(run[:shorter]))
    return int(differs[0]) if differs.size else shorter


def find_run(token_ids: Sequence[int] | TokenIds, run: Sequence[int]) -> int | None:
    """Index at which the whole `run` first stands contiguously, or None. An empty run stands nowhere."""
    if not run:
        return None
    ids, whole = np.asarray(token_ids), list(run)
    starts = np.flatnonzero(ids[: max(0, len(ids) - len(whole) + 1)] == whole[0])
    return next((int(at) for at in starts if ids[at : at + len(whole)].tolist() == whole), None)
