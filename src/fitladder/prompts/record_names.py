"""Rule for record ids: unique as text and as file names, on any file system.

Two ids that could overwrite each other in a log or folder are refused, and so is one that is no file name.
"""

import unicodedata
from collections.abc import Sequence
from typing import Final

from fitladder.errors import InputRefused
from fitladder.records.record_ids import fold_record_id

__all__ = ["check_file_name", "check_ids"]

MAX_ID_BYTES: Final = 200


def check_ids(ids: Sequence[object], *, what: str) -> tuple[str, ...]:
    """The ids, all of them strings that no other one aliases.

    Aliases are equal ids, 1 and "1", 1 and true, "a/b" and "a_b", composed and decomposed accents.

    Args:
        what: name of the list in refusals.

    Raises InputRefused naming both of two aliases, or an id that is no string or no file name.
    """
    seen: dict[str, object] = {}
    for value in ids:
        alias = fold_record_id(value)
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
    """Refuse a name that is no portable file name.

    Such are names with surrogates, control characters or path separators, dot names, names with a blank at an
    end, and names of more than MAX_ID_BYTES bytes in UTF-8.
    """
    bad = next((char for char in name if unicodedata.category(char) in ("Cc", "Cs") or char in "/\\"), None)
    if bad is not None:
        raise InputRefused(f"{what}: {ascii(name)[:80]} is no file name", got=f"the character {bad!a}")
    if name.strip(" .") != name or not name or len(name.encode()) > MAX_ID_BYTES:
        raise InputRefused(
            f"{what}: {ascii(name)[:80]} is no file name",
            need=f"1 to {MAX_ID_BYTES} bytes, no dot or blank at an end",
        )
