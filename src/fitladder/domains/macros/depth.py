"""Minimum depth of a program's behaviour, from its outputs on fixed probes.

Two programs that differ on a probe differ as functions, so outputs that no program of up to 4 primitives
gives prove a minimum depth above 4. Equal outputs do not prove equality: such a program counts as shallow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from fitladder.canonical import sha256_bytes
from fitladder.domains.macros.primitives import LENGTH, MODULUS, NAMES, PRIMITIVES, Values
from fitladder.domains.macros.program import execute
from fitladder.domains.macros.seeded_stream import SeededStream

__all__ = ["PROBE_COUNT", "DepthIndex", "fixed_probes", "program_signature", "shallow_outputs"]

PROBE_COUNT: Final = 48
_CORNERS: Final = ((0,) * 5, (16,) * 5, (0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (1, 0, 0, 0, 0), (0, 0, 0, 0, 1))


@cache
def fixed_probes() -> Values:
    """Inputs (48, 5) of every signature, int8, read-only: corner cases with ties, then seeded ones."""
    draw = SeededStream(0, "signature probes")
    drawn = [tuple(draw.below(MODULUS) for _ in range(LENGTH)) for _ in range(PROBE_COUNT - len(_CORNERS))]
    probes = np.array([*_CORNERS, *drawn], dtype=np.int8)
    probes.setflags(write=False)
    return probes


def program_signature(program: Sequence[str]) -> str:
    """SHA-256 over the program's outputs on the fixed probes, equal for programs that behave alike there."""
    return sha256_bytes(execute(program, fixed_probes()).tobytes())


def shallow_outputs(inputs: Values, max_depth: int) -> list[Values]:
    """Outputs of every program of 0..max_depth primitives.

    Args:
        inputs: int8 (n, 5).

    Returns one array a depth, (10**depth, n, 5), programs in lexicographic order of their opcodes.
    """
    levels = [inputs[np.newaxis]]
    for _ in range(max_depth):
        parents = levels[-1]
        children = np.empty((len(parents), len(NAMES), *parents.shape[1:]), dtype=np.int8)
        for code, name in enumerate(NAMES):
            children[:, code] = PRIMITIVES[name](parents)
        levels.append(children.reshape(-1, *parents.shape[1:]))
    return levels


@dataclass(frozen=True)
class DepthIndex:
    """The least depth of every behaviour that programs up to a depth have, keyed by outputs on `inputs`."""

    inputs: Values
    depth_of: dict[bytes, int]

    @classmethod
    def build(cls, inputs: Values | None = None, max_depth: int = 4) -> "DepthIndex":
        """Run all programs up to `max_depth` on inputs (n, 5), by default the fixed probes."""
        chosen = fixed_probes() if inputs is None else inputs
        depth_of: dict[bytes, int] = {}
        for depth, level in enumerate(shallow_outputs(chosen, max_depth)):
            width = level.shape[1] * LENGTH
            data = level.tobytes()
            for position in range(len(level)):
                depth_of.setdefault(data[position * width : (position + 1) * width], depth)
        return cls(chosen, depth_of)

    def min_depth(self, program: Sequence[str]) -> int | None:
        """Least depth with these outputs on the inputs; None where it is deeper than the index."""
        return self.depth_of.get(execute(program, self.inputs).tobytes())
