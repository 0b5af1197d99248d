"""Which ids may name a record: unique as text and as file names, on any system.

Two ids that could ever overwrite one another in a log or folder are refused together, before anything
runs; so is an id that no file system takes.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from fitladder.errors import InputRefused

__all__ = ["check_file_name", "check_ids"]

MAX_ID_BYTES: Final = 200
_OTHER: Final = re.compile(r"[^0-9a-z]+")


def _alias(value: object) -> str:
    """What is left of an id once type, case, accents' composition and punctuation are lost."""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        value = int(value)  # equal keys in every log that is keyed by value
    text = str(value)
    return _OTHER.sub(lambda match: "_" if match.group().isascii() else ascii(match.group()), _fold(text))


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def check_ids(ids: Sequence[object], *, what: str) -> tuple[str, ...]:
    """The ids as strings. Raises InputRefused naming both of any two that alias each other (1 and "1",
    1 and true, "a/b" and "a_b", composed and decomposed accents, equal ids), then any unfit one."""
    seen: dict[str, object] = {}
    for value in ids:
        alias = _alias(value)
        if alias in seen:
            raise InputRefused(
                f"{what}: ids overwrite each other",
                got=f"{ascii(seen[alias])[:80]} and {ascii(value)[:80]}",
                need="ids that differ in letters or digits",
            )
        seen[alias] = value
    out = []
    for value in ids:
        if not isinstance(value, str):
            raise InputRefused(
                f"{what}: id", got=f"{type(value).__name__} {ascii(value)[:80]}", need="a string"
            )
        check_file_name(value, what=what)
        out.append(value)
    return tuple(out)


def check_file_name(name: str, *, what: str) -> None:
    """Refuse a name that is no portable file name: surrogates, NUL and other control characters, path
    separators, dot names, blanks at an end, more than 200 bytes."""
    bad = next((char for char in name if unicodedata.category(char) in ("Cc", "Cs") or char in "/\\"), None)
    if bad is not None:
        raise InputRefused(f"{what}: {ascii(name)[:80]} is no file name", got=f"the character {bad!a}")
    if name.strip(" .") != name or not name or len(name.encode()) > MAX_ID_BYTES:
        raise InputRefused(
            f"{what}: {ascii(name)[:80]} is no file name",
            need=f"1 to {MAX_ID_BYTES} bytes, no dot or blank at an end",
        )
