"""Reading a model's config.json strictly: a missing or odd field is one clear line naming it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fitladder.errors import InputRefused

__all__ = ["DTYPE_BYTES", "Fields", "read_dtype_bytes", "read_text_fields"]

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


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


def read_text_fields(config: Mapping[str, Any], where: str) -> tuple[Fields, Fields]:
    """A config's own fields and those of its text part, which are the same where it has no part of its own.

    Raises InputRefused where `text_config` is no object.
    """
    outer = Fields(config, where)
    text = config.get("text_config")
    if text is not None and not isinstance(text, Mapping):
        raise outer.refuse("text_config", "an object")
    return outer, outer if text is None else Fields(text, f"{where}: text_config")


def read_dtype_bytes(outer: Fields, fields: Fields) -> int:
    """Bytes an element of the model's dtype, from the text part before the whole config.

    Raises InputRefused where neither names a dtype that is known.
    """
    for place in (fields, outer):
        for name in ("dtype", "torch_dtype"):
            if place.values.get(name) is not None:
                if (found := place.text(name)) not in DTYPE_BYTES:
                    raise place.refuse(name, f"one of {', '.join(DTYPE_BYTES)}")
                return DTYPE_BYTES[found]
    raise outer.refuse("dtype", f"one of {', '.join(DTYPE_BYTES)}")
