"""Is a program's behaviour really five deep? Signatures, and the index of all that is shallower.

Two programs that differ on a probe differ as functions, so a signature absent from the exhaustive
index of depth <= 4 proves a minimum depth above 4. (Equal signatures do not prove equality; the
error is on the safe side: such a program counts as shallow.)
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
    """The probe set of every signature: corners with ties first, then drawn inputs; (48, 5), read-only."""
    draw = SeededStream(0, "signature probes")
    drawn = [tuple(draw.below(MODULUS) for _ in range(LENGTH)) for _ in range(PROBE_COUNT - len(_CORNERS))]
    probes = np.array([*_CORNERS, *drawn], dtype=np.int8)
    probes.setflags(write=False)
    return probes


def program_signature(program: Sequence[str]) -> str:
    """SHA-256 over the program's outputs on the fixed probes: one name for one behaviour."""
    return sha256_bytes(execute(program, fixed_probes()).tobytes())


def shallow_outputs(inputs: Values, max_depth: int) -> list[Values]:
    """Outputs of every program, by depth 0..max_depth: level d is (10**d, inputs, 5), programs in
    lexicographic order of their opcodes."""
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
    """Every behaviour reachable within a depth, and the least depth that has it."""

    inputs: Values
    depth_of: dict[bytes, int]  # by the behaviour's outputs on the inputs

    @classmethod
    def build(cls, inputs: Values | None = None, max_depth: int = 4) -> "DepthIndex":
        """Exhaustive over 10 + 100 + ... programs on inputs (n, 5); the fixed probes by default."""
        chosen = fixed_probes() if inputs is None else inputs
        depth_of: dict[bytes, int] = {}
        for depth, level in enumerate(shallow_outputs(chosen, max_depth)):
            width = level.shape[1] * LENGTH
            data = level.tobytes()
            for position in range(len(level)):
                depth_of.setdefault(data[position * width : (position + 1) * width], depth)
        return cls(chosen, depth_of)

    def min_depth(self, program: Sequence[str]) -> int | None:
        """Least depth with this behaviour on the inputs; None means deeper than the index."""
        return self.depth_of.get(execute(program, self.inputs).tobytes())
