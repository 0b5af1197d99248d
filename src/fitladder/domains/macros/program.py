"""Programs of primitives: their text form, and their execution, one or many at once.

A program is a tuple of primitive names, applied from left to right. Macros are expanded in library.py.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fitladder.domains.macros.primitives import NAMES, PRIMITIVES, Values
from fitladder.errors import InputRefused

__all__ = ["NO_CALL", "Program", "execute", "execute_many", "format_calls", "opcodes", "parse_calls"]

Program = tuple[str, ...]
NO_CALL: Final = 255  # pads shorter programs of a batch
_OPCODE: Final = {name: code for code, name in enumerate(NAMES)}


def format_calls(calls: Sequence[str]) -> str:
    """Text of calls: `A | B | C`."""
    return " | ".join(calls)


def parse_calls(text: str) -> Program:
    """Calls of a text `A | B | C`, without blanks around each; names are not looked up.

    Linear in the text, whose length the caller bounds. Raises ValueError on an empty call.
    """
    calls = tuple(part.strip(" \t") for part in text.split("|"))
    if not all(calls):
        raise ValueError("an empty call")
    return calls


def execute(program: Sequence[str], values: Values) -> Values:
    """Outputs (n, 5) of one program on int8 inputs (n, 5). Raises InputRefused on an unknown name."""
    for name in program:
        if name not in PRIMITIVES:
            raise InputRefused("unknown primitive", got=ascii(name)[:40], need=" ".join(NAMES))
        values = PRIMITIVES[name](values)
    return values


def opcodes(programs: Sequence[Sequence[str]]) -> NDArray[np.uint8]:
    """Programs as uint8 opcodes (programs, longest), shorter ones padded at the end with NO_CALL."""
    table = np.full((len(programs), max(map(len, programs), default=0)), NO_CALL, dtype=np.uint8)
    for row, program in enumerate(programs):
        table[row, : len(program)] = [_OPCODE[name] for name in program]
    return table


def execute_many(codes: NDArray[np.uint8], states: Values) -> Values:
    """Outputs (P, inputs, 5) of P programs, from opcodes (P, depth) and int8 inputs (P, inputs, 5).

    At each step the programs that call the same primitive are mapped together. Raises InputRefused on shapes
    that do not agree.
    """
    if codes.ndim != 2 or states.ndim != 3 or len(codes) != len(states):
        raise InputRefused(
            "batch of programs", got=f"{codes.shape} and {states.shape}", need="(P, D), (P, I, 5)"
        )
    states = states.copy()
    for step in range(codes.shape[1]):
        calls = codes[:, step]
        for code, name in enumerate(NAMES):
            rows = np.flatnonzero(calls == code)
            if rows.size:
                states[rows] = PRIMITIVES[name](states[rows])
    return states
