"""Where does a run of token ids first stand whole in another? A marker is never known by its first id."""

from collections.abc import Container, Sequence

__all__ = ["find_first", "find_run"]


def find_first(token_ids: Sequence[int], wanted: Container[int]) -> int | None:
    """Index of the first id that is one of `wanted`, or None."""
    return next((index for index, token in enumerate(token_ids) if token in wanted), None)


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
