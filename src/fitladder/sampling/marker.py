"""Runs of token ids found in others, whole: a marker is never known by its first id."""

from collections.abc import Container, Sequence

__all__ = ["common_prefix", "find_first", "find_run"]


def find_first(token_ids: Sequence[int], wanted: Container[int]) -> int | None:
    """Index of the first id that is one of `wanted`, or None."""
    return next((index for index, token in enumerate(token_ids) if token in wanted), None)


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """How many leading ids both have in common."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(left), len(right)))


def find_run(token_ids: Sequence[int], run: Sequence[int]) -> int | None:
    """Index at which the whole `run` first stands contiguously, or None. An empty run stands nowhere."""
    if not run:
        return None
    first, whole, last = run[0], tuple(run), len(token_ids) - len(run)
    return next(
        (
            index
            for index, token in enumerate(token_ids)
            if token == first and index <= last and tuple(token_ids[index : index + len(whole)]) == whole
        ),
        None,
    )
