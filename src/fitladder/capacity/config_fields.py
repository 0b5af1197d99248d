"""Reading a model's config.json strictly: a missing or odd field is one clear line naming it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fitladder.errors import InputRefused

__all__ = ["Fields"]


@dataclass(frozen=True)
class Fields:
    """A config's fields under the name that messages give it."""

    values: Mapping[str, Any]
    where: str

    def refuse(self, field: str, need: str, do: str | None = None) -> InputRefused:
        """The error for a field that is absent or odd."""
        found = repr(self.values[field])[:80] if field in self.values else "no such field"
        return InputRefused(f"{self.where}: field {field}", got=found, need=need, do=do)

    def count(self, field: str, default: int | None = None) -> int:
        """A positive integer; `default` where the field is absent or null."""
        value = self.values.get(field)
        if value is None and default is not None:
            return default
        if type(value) is not int or value < 1:
            raise self.refuse(field, "a positive integer")
        return value

    def flag(self, field: str, default: bool) -> bool:
        """A boolean; `default` where the field is absent or null."""
        value = self.values.get(field)
        if value is None:
            return default
        if type(value) is not bool:
            raise self.refuse(field, "true or false")
        return value

    def text(self, field: str, default: str | None = None) -> str:
        """A string; `default` where the field is absent or null."""
        value = self.values.get(field)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.refuse(field, "a string")
        return value

    def names(self, field: str, length: int) -> tuple[str, ...] | None:
        """A list of `length` strings, None where the field is absent or null."""
        value = self.values.get(field)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or len(value) != length:
            raise self.refuse(field, f"a list of {length} layer types")
        if not all(isinstance(name, str) for name in value):
            raise self.refuse(field, "layer types as strings")
        return tuple(value)
