"""Record of a live gate that passed: the numbers it compared, by name, for the preflight.

A gate that refuses leaves none: it raises GateRefused. So a record is always a passed one.
"""

from typing import Literal

from fitladder.frozen import Frozen

__all__ = ["GateName", "GateRecord", "Number"]

GateName = Literal["live_settings", "prompt_identity", "context", "kv_fit", "cuda_graphs"]
Number = bool | int | str | tuple[int, ...] | None


class GateRecord(Frozen):
    """One gate's evidence: its name, every number it compared, and that it passed."""

    name: GateName
    numbers: dict[str, Number]
    passed: Literal[True] = True
