"""Field-by-field comparison of a recorded document with the one recomputed from its sources."""

from pathlib import Path

from pydantic import BaseModel

from fitladder.errors import LineageError

__all__ = ["check_recorded"]


def check_recorded(
    recorded: BaseModel, recomputed: BaseModel, path: Path, *, long_field: str, source: str, do: str
) -> None:
    """Refuse a recorded document that its sources do not give.

    Args:
        recorded: the document as the file at `path` has it.
        recomputed: the same document, made from its sources now.
        path: names the file in messages.
        long_field: the field whose values are too long for a line; only its name is told.
        source: names in messages what `recomputed` was made from.
        do: what to type to make the file match.

    Raises LineageError naming the first field that differs.
    """
    for name in type(recomputed).model_fields:
        got, need = getattr(recorded, name), getattr(recomputed, name)
        if got == need:
            continue
        if name == long_field:
            raise LineageError(f"{path}: {name} are not those of the {source}", do=do)
        raise LineageError(f"{path}: {name}", got=got, need=need, do=do)
