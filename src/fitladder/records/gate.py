"""What does a gate leave behind when it lets a phase pass? Named numbers for the preflight.

A gate that says no leaves nothing: it raises GateRefused. So a record is always a passed one.
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
