"""Macro libraries: exact aliases of two or three primitives, and what a call with them expands to.

A macro may name primitives only, so expansion is one lookup deep: no recursion, no cycle, and at most
three primitives a call. A file that says otherwise is refused, not unrolled.
"""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from fitladder.canonical import canonical_sha256
from fitladder.domains.macros.primitives import NAMES
from fitladder.domains.macros.program import Program

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
_CONFIG: Final = ConfigDict(frozen=True, extra="forbid", strict=True)


class Macro(BaseModel):
    """One alias. `support` counts the construction programs that hold the expansion."""

    model_config = _CONFIG
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


class Library(BaseModel):
    """One arm's macros, M0 upwards without a gap; the id is derived from arm and expansions."""

    model_config = _CONFIG
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
        """The name in front of the id's digest."""
        return self.id.rpartition("-")[0]

    @property
    def inventory(self) -> dict[str, Program]:
        """Every legal call with its expansion, primitives first."""
        return {name: (name,) for name in NAMES} | {macro.token: macro.expansion for macro in self.macros}

    def plain(self) -> dict[str, object]:
        """As stored: an absent draw seed is left out."""
        return self.model_dump(mode="json", exclude_none=True)


class Libraries(BaseModel):
    """The libraries file."""

    model_config = _CONFIG
    schema_version: Annotated[int, Field(ge=1, le=1)]
    libraries: dict[str, Library]

    @model_validator(mode="after")
    def _named(self) -> "Libraries":
        for name, library in self.libraries.items():
            if library.arm != name:
                raise ValueError(f"library {library.id} stands under the name {name[:40]!a}")
        return self

    def plain(self) -> dict[str, object]:
        """As stored."""
        libraries = {name: library.plain() for name, library in self.libraries.items()}
        return {"schema_version": self.schema_version, "libraries": libraries}


def library_id(arm: str, expansions: Sequence[Sequence[str]]) -> str:
    """`<arm>-<first 16 hex digits of SHA-256 over canonical {arm, expansions}>`, the historic rule."""
    return f"{arm}-{canonical_sha256({'arm': arm, 'expansions': [list(item) for item in expansions]})[:16]}"


def expand(calls: Sequence[str], library: Library) -> Program:
    """The primitives behind surface calls. Raises KeyError on a call outside the inventory."""
    inventory = library.inventory
    return tuple(name for call in calls for name in inventory[call])
