"""Rows of other people's records: a name, a list of token ids and a finish reason, dug out by column.

It sees parsed records, never files. Whatever is not whole raises InputRefused with the row's place.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fitladder.errors import InputRefused

__all__ = ["MAX_TOKEN_ID", "Columns", "ForeignRow", "rows_of_records"]

TokenIds = npt.NDArray[np.int32]
MAX_TOKEN_ID = 2**31 - 1
FINISH_NAMES = ("finish_reason", "stop_reason")
TEXT_ID = re.compile(r"token_id:([0-9]{1,10})")


@dataclass(frozen=True)
class Columns:
    """Which columns to read, dotted; None: `id`, and a finish reason next to the ids, if there is one."""

    token_ids: str
    id: str | None = None
    finish: str | None = None

    @property
    def id_name(self) -> str:
        """The column that names rows, if any has it."""
        return self.id or "id"


@dataclass(frozen=True)
class ForeignRow:
    """One list of ids with the name it goes by; `where` is its place in messages.

    `finish` is the finish reason as the file states it, None where it states none.
    """

    id: str | int
    token_ids: TokenIds
    where: str
    finish: str | None = None


def rows_of_records(
    records: Sequence[tuple[str, Any]], first_number: int, columns: Columns
) -> tuple[list[ForeignRow], bool]:
    """Rows of (where, record) pairs in order, and whether the records name them.

    `first_number` is the number of the first record in its file: unnamed rows go by their number. A `*` in
    the column gives a row for each element, named `<id>#<place>`. Raises InputRefused.
    """
    named: bool | None = None
    rows: list[ForeignRow] = []
    for number, (where, record) in enumerate(records, start=first_number):
        if named is None:
            named = columns.id_name in record
            if columns.id is not None and not named:
                raise InputRefused(f"{where}: no {columns.id!r}", need="what --id-column names")
        if named != (columns.id_name in record):
            raise some_rows_only(where, columns)
        name = record[columns.id_name] if named else number
        rows.extend(_rows_of_record(name, record, where, columns))
    return rows, bool(named)


def some_rows_only(where: str, columns: Columns) -> InputRefused:
    """The refusal of a file that names only some of its rows."""
    return InputRefused(f"{where}: {columns.id_name!r}", got="in some rows only", need="in all or none")


def check_name(name: Any, where: str, columns: Columns) -> str | int:
    """A row's name is text or an integer. Raises InputRefused."""
    if type(name) is str or type(name) is int:
        return name
    raise InputRefused(f"{where}: {columns.id_name!r}", got=repr(name)[:80], need="text or an integer")


def finish_word(value: Any, where: str, column: str) -> str | None:
    """The finish reason as text: a word, or the `type` of SGLang's object. Raises InputRefused."""
    word = value.get("type") if isinstance(value, dict) else value
    if word is None or type(word) is str:
        return word
    raise InputRefused(f"{where}: {column!r}", got=repr(value)[:80], need="a finish reason as text")


def _rows_of_record(name: Any, record: Any, where: str, columns: Columns) -> Iterator[ForeignRow]:
    column = columns.token_ids
    check_name(name, where, columns)
    try:
        found = list(_dig(record, column.split("."), where, column, None))
    except InputRefused as error:
        lists = ", ".join(dict.fromkeys(_id_lists(record, "")))[:200]
        do = f"--column takes one of {lists}" if lists else "it has no list of ids; text is not audited"
        raise InputRefused(error.what, got=error.got, need=error.need, do=do) from error
    finishes = _finishes(record, [parent for _, parent in found], where, columns)
    is_many = "*" in column.split(".")
    for place, ((value, _), finish) in enumerate(zip(found, finishes, strict=True)):
        yield ForeignRow(
            f"{name}#{place}" if is_many else name, _token_ids(value, where, column), where, finish
        )


def _finishes(record: Any, parents: Sequence[Any], where: str, columns: Columns) -> list[str | None]:
    """One finish reason for each id list: of the named column, else the one next to the list."""
    if columns.finish is None:
        words = []
        for parent in parents:
            name = next((name for name in FINISH_NAMES if isinstance(parent, dict) and name in parent), None)
            words.append(finish_word(parent[name], where, name) if name else None)
        return words
    values = [value for value, _ in _dig(record, columns.finish.split("."), where, columns.finish, None)]
    if len(values) == 1:
        values *= len(parents)
    if len(values) != len(parents):
        got, need = f"{len(values)} finish reasons", f"one, or {len(parents)}: one for each list of ids"
        raise InputRefused(f"{where}: {columns.finish!r}", got=got, need=need)
    return [finish_word(value, where, columns.finish) for value in values]


def _dig(value: Any, parts: Sequence[str], where: str, column: str, parent: Any) -> Iterator[tuple[Any, Any]]:
    """(value, the value that holds it) of every place that the column names."""
    if not parts:
        yield value, parent
        return
    part, rest = parts[0], parts[1:]
    if part == "*" and isinstance(value, list):
        for item in value:
            yield from _dig(item, rest, where, column, value)
    elif isinstance(value, dict) and part in value:
        yield from _dig(value[part], rest, where, column, value)
    elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
        yield from _dig(value[int(part)], rest, where, column, value)
    else:
        have = ", ".join(map(str, value)) if isinstance(value, dict) else type(value).__name__
        raise InputRefused(f"{where}: no {column!r}", got=have[:120], need=f"{part!r}")


def _id_lists(value: Any, path: str) -> Iterator[str]:
    """Where a record holds lists of ids, as `--column` takes it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _id_lists(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and all(_id_of(item) is not None for item in value):
        yield path
    elif isinstance(value, list):
        for item in value[:1]:
            yield from _id_lists(item, f"{path}.*")


def _id_of(item: Any) -> int | None:
    """The id that one element states, in the shapes that engines write; None if it states none.

    An integer; vLLM's text `token_id:123`, alone or as the `token` of an object; SGLang's triple of
    log-probability, id and text.
    """
    if type(item) is int:
        return item
    if isinstance(item, list) and len(item) == 3 and type(item[1]) is int:
        is_triple = type(item[0]) in (float, int, type(None)) and type(item[2]) in (str, type(None))
        return item[1] if is_triple and not (type(item[0]) is int and item[2] is None) else None
    if isinstance(item, dict):
        item = item.get("token")
    match = TEXT_ID.fullmatch(item) if isinstance(item, str) else None
    return int(match.group(1)) if match else None


def _token_ids(value: Any, where: str, column: str) -> TokenIds:
    if not isinstance(value, list):
        raise InputRefused(f"{where}: {column!r}", got=repr(value)[:80], need="a list of token ids")
    try:
        if set(map(type, value)) <= {int}:
            ids = np.array(value, dtype=np.int64)
            if not len(ids) or (ids.min() >= 0 and ids.max() <= MAX_TOKEN_ID):
                return ids.astype(np.int32)
    except OverflowError:
        pass
    found = [_id_of(item) for item in value]
    for item, token_id in zip(value, found, strict=True):
        if token_id is None or not 0 <= token_id <= MAX_TOKEN_ID:
            got = repr(item)[:80]
            raise InputRefused(f"{where}: {column!r} holds {got}", need="integers from 0 below 2**31")
    return np.array(found, dtype=np.int32)
