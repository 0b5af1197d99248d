"""Base of every record, and the annotated scalar types that several records share.

A record is immutable, strictly typed, and refuses fields that it does not know.
"""

from typing import Annotated

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
)

__all__ = ["Count", "Frozen", "Identifier", "Sha256", "Size", "TokenId"]

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]{2,79}$")]


Count = Annotated[int, Field(gt=0)]


Size = Annotated[int, Field(ge=0)]
TokenId = Annotated[int, Field(ge=0)]


class Frozen(BaseModel):
    """A registered value: immutable, strict types, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)
