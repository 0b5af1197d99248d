"""Is a recorded document the one that its bundles give? Field by field, so that a refusal names the edit."""

from pathlib import Path

from pydantic import BaseModel

from fitladder.errors import LineageError

__all__ = ["check_same"]


def check_same(recorded: BaseModel, again: BaseModel, path: Path, *, long: str, of: str, do: str) -> None:
    """Raises LineageError naming the first field of `path` that differs from the one made again.

    `long`: the field whose values no line can hold; `of`: what gives it.
    """
    for name in type(again).model_fields:
        got, need = getattr(recorded, name), getattr(again, name)
        if got == need:
            continue
        if name == long:
            raise LineageError(f"{path}: {name} are not those of the {of}", do=do)
        raise LineageError(f"{path}: {name}", got=got, need=need, do=do)
