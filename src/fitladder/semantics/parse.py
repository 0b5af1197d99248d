"""Parser of answers: exactly one legal `PROGRAM:` line, or the reason why an answer is rejected.

Sees the text of the answer, never the thinking before it. Time is linear in the text whatever it holds.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fitladder.domains.macros.library import Library, expand
from fitladder.domains.macros.program import Program, parse_calls
from fitladder.domains.macros.tasks import MAX_PRIMITIVES, MAX_SURFACE_CALLS

__all__ = [
    "MAX_ANSWER_CHARACTERS",
    "Candidate",
    "Limits",
    "Reason",
    "Rejection",
    "parse_answer",
    "strip_answer",
]

MAX_ANSWER_CHARACTERS: Final = 65_536  # 512 tokens of the longest kind
_LINE: Final = "PROGRAM:"
_FENCE: Final = re.compile(r"```[A-Za-z0-9_+-]{0,20}")


class Reason(StrEnum):
    """Reasons for rejecting an answer; the values are those of the reports."""

    EMPTY = "empty"
    UNDECODABLE = "undecodable"
    TOO_LONG = "too_long"
    NO_PROGRAM_LINE = "no_program_line"
    SEVERAL_PROGRAM_LINES = "several_program_lines"
    TEXT_BESIDE_PROGRAM = "text_beside_program"
    EMPTY_CALL = "empty_call"
    UNKNOWN_CALL = "unknown_call"
    SURFACE_LIMIT = "surface_limit"
    EXPANDED_LIMIT = "expanded_limit"


@dataclass(frozen=True)
class Limits:
    """Limits of a program, written and in primitives, and the texts that may end an answer."""

    max_surface_calls: int = MAX_SURFACE_CALLS
    max_primitives: int = MAX_PRIMITIVES
    terminal_markers: tuple[str, ...] = ("<|im_end|>", "<|endoftext|>")


@dataclass(frozen=True)
class Candidate:
    """A legal program: `surface` as written, `expansion` in primitives."""

    surface: Program
    expansion: Program

    @property
    def uses_macro(self) -> bool:
        """True where a written call is a macro."""
        return self.surface != self.expansion


@dataclass(frozen=True)
class Rejection:
    """A rejected answer. `detail` is ASCII of bounded length."""

    reason: Reason
    detail: str = ""

    @property
    def is_parsed(self) -> bool:
        """True for a program whose only fault is its length in primitives: it counts as parsed."""
        return self.reason is Reason.EXPANDED_LIMIT


def strip_answer(text: str, terminal_markers: Sequence[str]) -> str:
    """The text without outer blanks, terminal markers at its end, and one enclosing code fence."""
    text = text.strip()
    end = len(text)
    while marker := next((one for one in terminal_markers if one and text.endswith(one, 0, end)), None):
        end -= len(marker)
        while end and text[end - 1].isspace():
            end -= 1
    lines = text[:end].split("\n")
    if len(lines) > 2 and _FENCE.fullmatch(lines[0].strip()) and lines[-1].strip() == "```":
        lines = lines[1:-1]
    return "\n".join(lines).strip()


def parse_answer(text: str, library: Library, limits: Limits) -> Candidate | Rejection:
    """The program in an answer, or the reason why there is none. Never raises, whatever the text.

    Args:
        library: macros of the sample's arm.
    """
    if len(text) > MAX_ANSWER_CHARACTERS:
        return Rejection(Reason.TOO_LONG, f"{len(text)} characters")
    lines = [line.strip() for line in strip_answer(text, limits.terminal_markers).split("\n")]
    lines = [line for line in lines if line]
    if not lines:
        return Rejection(Reason.EMPTY)
    programs = [line for line in lines if line.startswith(_LINE)]
    if len(programs) != 1:
        reason = Reason.SEVERAL_PROGRAM_LINES if programs else Reason.NO_PROGRAM_LINE
        return Rejection(reason, f"{len(programs)} lines")
    if len(lines) > 1:
        return Rejection(Reason.TEXT_BESIDE_PROGRAM, f"{len(lines) - 1} other lines")
    try:
        surface = parse_calls(programs[0].removeprefix(_LINE))
    except ValueError:
        return Rejection(Reason.EMPTY_CALL)
    return _legal(surface, library, limits)


def _legal(surface: Program, library: Library, limits: Limits) -> Candidate | Rejection:
    inventory = library.inventory
    unknown = next((call for call in surface if call not in inventory), None)
    if unknown is not None:
        return Rejection(Reason.UNKNOWN_CALL, ascii(unknown[:40]))
    if len(surface) > limits.max_surface_calls:
        return Rejection(Reason.SURFACE_LIMIT, f"{len(surface)} calls")
    expansion = expand(surface, library)
    if len(expansion) > limits.max_primitives:
        return Rejection(Reason.EXPANDED_LIMIT, f"{len(expansion)} primitives")
    return Candidate(surface, expansion)
