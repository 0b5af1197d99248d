"""The frozen protocol of one experiment as a record; `registry.binding` computes it."""

from typing import Any, Literal

from fitladder.frozen import Frozen, Identifier, Sha256

__all__ = ["Binding", "Moved"]


class Binding(Frozen):
    """The frozen protocol of one experiment. `binding_sha256` is what a GO, a receipt and a catalog name."""

    schema_version: Literal[1]
    experiment_id: Identifier
    section: dict[str, Any]
    data: dict[str, Sha256]
    generation_code: dict[str, Sha256]
    decision_code: dict[str, Sha256]
    generation_sha256: Sha256
    binding_sha256: Sha256


class Moved(Frozen):
    """One part of a binding that is not what it was; None where it did not exist."""

    part: str
    old: Any
    new: Any
