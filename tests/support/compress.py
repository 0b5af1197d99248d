"""The fewest calls that write a program with a library's macros."""

from collections.abc import Sequence

from fitladder.domains.macros.library import Library
from fitladder.domains.macros.program import Program


def compress(program: Sequence[str], library: Library) -> Program:
    """The shortest surface with this exact expansion; among equals the earliest-listed macro first."""
    best: list[Program] = [()]  # best[i]: shortest surface of the last i primitives
    for left in range(1, len(program) + 1):
        start = len(program) - left
        options = [
            (macro.token, *best[left - macro.length])
            for macro in library.macros
            if tuple(program[start : start + macro.length]) == macro.expansion
        ]
        best.append(min([*options, (program[start], *best[left - 1])], key=len))
    return best[-1]
