"""Programs of primitives: their text form and their execution on many inputs at once.

A program is a tuple of primitive names, applied from left to right. Macros are expanded in library.py.
"""

from collections.abc import Sequence

from fitladder.domains.macros.primitives import NAMES, PRIMITIVES, Values
from fitladder.errors import InputRefused

__all__ = ["Program", "execute", "format_calls", "parse_calls"]

Program = tuple[str, ...]


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
