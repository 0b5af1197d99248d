"""Macro libraries: names for two or three primitives in a row, and the expansion of calls.

A macro expands to primitives only, so expansion needs one lookup and a call gives at most three primitives. A
file with a macro of macros is refused.
"""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field, field_validator, model_validator

from fitladder.canonical import canonical_sha256
from fitladder.domains.macros.primitives import NAMES
from fitladder.domains.macros.program import Program
from fitladder.frozen import Frozen

__all__ = [
    "MAX_MACROS",
    "MAX_MACRO_LENGTH",
    "Libraries",
    "Library",
    "Macro",
    "expand",
    "library_id",
]

MAX_MACRO_LENGTH: Final = 3
MAX_MACROS: Final = 8


class Macro(Frozen):
    """One macro. `support` is the number of train programs that contain its expansion."""

    token: Annotated[str, Field(pattern=r"^M[0-7]$")]
    expansion: Annotated[tuple[str, ...], Field(min_length=2, max_length=MAX_MACRO_LENGTH)]
    length: int
    source_name: Annotated[str, Field(max_length=80)]
    support: Annotated[int, Field(ge=0)]

    @field_validator("expansion")
    @classmethod
    def _primitives_only(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in NAMES:
                raise ValueError(f"macros expand to primitives only, got {name[:40]!a}")
        return value

    @model_validator(mode="after")
    def _length_agrees(self) -> "Macro":
        if self.length != len(self.expansion):
            raise ValueError(f"length {self.length} of an expansion of {len(self.expansion)}")
        return self


class Library(Frozen):
    """Macros of one arm, M0 upwards without a gap; the id follows from arm and expansions."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9_]+-[0-9a-f]{16}$")]
    provenance: str
    macros: Annotated[tuple[Macro, ...], Field(max_length=MAX_MACROS)]
    draw_seed: int | None = None

    @model_validator(mode="after")
    def _whole(self) -> "Library":
        if [macro.token for macro in self.macros] != [f"M{i}" for i in range(len(self.macros))]:
            raise ValueError("macro tokens run M0, M1, ... in order, each once")
        need = library_id(self.arm, [macro.expansion for macro in self.macros])
        if self.id != need:
            raise ValueError(f"library id {self.id} names other macros, need {need}")
        return self

    @property
    def arm(self) -> str:
        """Name of the arm: the id without its digest."""
        return self.id.rpartition("-")[0]

    @property
    def inventory(self) -> dict[str, Program]:
        """Expansion of every legal call by its name, primitives first."""
        return {name: (name,) for name in NAMES} | {macro.token: macro.expansion for macro in self.macros}

    def plain(self) -> dict[str, object]:
        """The library as stored in JSON; an absent draw seed is left out."""
        return self.model_dump(mode="json", exclude_none=True)


class Libraries(Frozen):
    """libraries.json: the library of each arm."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    libraries: dict[str, Library]

    @model_validator(mode="after")
    def _named(self) -> "Libraries":
        for name, library in self.libraries.items():
            if library.arm != name:
                raise ValueError(f"library {library.id} stands under the name {name[:40]!a}")
        return self

    def plain(self) -> dict[str, object]:
        """The libraries as stored in JSON."""
        libraries = {name: library.plain() for name, library in self.libraries.items()}
        return {"schema_version": self.schema_version, "libraries": libraries}


def library_id(arm: str, expansions: Sequence[Sequence[str]]) -> str:
    """Id of a library: `<arm>-<first 16 hex digits of SHA-256 over canonical JSON {arm, expansions}>`."""
    return f"{arm}-{canonical_sha256({'arm': arm, 'expansions': [list(item) for item in expansions]})[:16]}"


def expand(calls: Sequence[str], library: Library) -> Program:
    """Calls written out in primitives. Raises KeyError on a call outside the inventory."""
    inventory = library.inventory
    return tuple(name for call in calls for name in inventory[call])
