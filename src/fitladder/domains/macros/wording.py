"""Wording of the prompts, `full` and `compact`, from the visible parts of a task set.

An edit changes the records, hence their digests and the binding of every experiment that uses them.
"""

from collections.abc import Sequence
from typing import Final, Literal

from fitladder.domains.macros.library import Library
from fitladder.domains.macros.program import format_calls
from fitladder.domains.macros.tasks import Demonstration, Example

__all__ = ["render_system", "render_user"]

Wording = Literal["full", "compact"]

_MEANING: Final = {
    "ADD1": ("every value plus 1", "add 1"),
    "MUL2": ("every value doubled", "double"),
    "NEG": ("every value x becomes 17 - x", "negate"),
    "REV": ("order reversed", "reverse the list"),
    "ROTL": ("first value moved to the end", "move the first value to the end"),
    "SWAP": ("first and second value exchanged", "swap the first two values"),
    "SORT": ("ascending order", "sort upwards"),
    "PREFIX": ("running sums", "running sums"),
    "DIFF": (
        "first value kept, then each value minus the one before it",
        "each value minus the one before it",
    ),
    "ZIGZAG": ("values 1, 3, 5, then values 2, 4", "values 1 3 5, then 2 4"),
}
_SYSTEM: Final = {
    "full": (
        "You reconstruct programs. One unknown program turned each input list below into its output list. "
        "A program is a chain of calls, run from left to right on a list of five integers between 0 and 16. "
        "{calls} Work out a program that reproduces every example. Your final answer is a single line: the "
        "word PROGRAM, a colon, and the calls in order with | between them. The answer holds nothing else: "
        "no reasoning, no code, no fence."
    ),
    "compact": (
        "Find the program that maps each list to its result. {calls} "
        "Answer with one line: PROGRAM: CALL | CALL"
    ),
}
_CALLS: Final = {
    ("full", False): "The only calls are the primitives listed.",
    ("full", True): (
        "A call is one of the listed primitives or one of the listed macros; a macro does exactly what its "
        "primitives do, and counts as one written call."
    ),
    ("compact", False): "Its calls are primitives.",
    ("compact", True): "Its calls are primitives and macros.",
}


def render_system(wording: Wording, *, has_macros: bool) -> str:
    """Text of the system message; `has_macros` where the arm has a library."""
    return _SYSTEM[wording].format(calls=_CALLS[wording, has_macros])


def render_user(
    wording: Wording,
    library: Library,
    demonstrations: Sequence[Demonstration],
    visible: Sequence[Example],
    *,
    max_surface_calls: int,
    max_primitives: int,
) -> str:
    """Text of the user message: calls, limits, demonstrations, and the task's visible examples.

    Args:
        library: macros of the arm; none for base.
        demonstrations: shown solved, in this order.
        visible: the examples to reproduce.
    """
    macros = [f"{macro.token} = {format_calls(macro.expansion)}" for macro in library.macros]
    if wording == "compact":
        parts = [
            "Lists have 5 numbers, modulo 17. Calls run left to right.\nPrimitives:\n"
            + "\n".join(f"{name}: {short}" for name, (_, short) in _MEANING.items()),
            *(["Macros:\n" + "\n".join(macros)] if macros else []),
            f"Use at most {max_surface_calls} calls and {max_primitives} primitives.",
            *(
                "Solved:\n" + _examples(one.io) + f"\nPROGRAM: {format_calls(one.program)}"
                for one in demonstrations
            ),
            "Task:\n" + _examples(visible),
        ]
        return "\n".join(parts)
    solved = [
        f"Training program {one.id}\n{_examples(one.io)}\nPROGRAM: {format_calls(one.program)}"
        for one in demonstrations
    ]
    parts = [
        "Primitives (arithmetic modulo 17):\n"
        + "\n".join(f"{name} - {long}" for name, (long, _) in _MEANING.items()),
        "Macros:\n" + ("\n".join(macros) if macros else "(there are none in this task)"),
        f"Limits: a program has at most {max_surface_calls} written calls, and at most {max_primitives} "
        "primitives once every macro is written out.",
        "Solved training programs, to show the form:\n" + "\n\n".join(solved),
        "Examples to reproduce:\n" + _examples(visible),
        "Which program is it? Answer with the PROGRAM line.",
    ]
    return "\n\n".join(parts)


def _examples(examples: Sequence[Example]) -> str:
    return "\n".join(f"{_list(one.input)} -> {_list(one.output)}" for one in examples)


def _list(values: Sequence[int]) -> str:
    return " ".join(map(str, values))
