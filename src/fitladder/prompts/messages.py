"""Record: the messages of one prompt, under an id that is unique as text and as a file name.

Knows nothing of tasks or macros, so that rendering and the manifest do not depend on a domain.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from fitladder.canonical import parse_model
from fitladder.errors import InputRefused
from fitladder.frozen import Frozen
from fitladder.prompts.record_names import check_ids

__all__ = ["Message", "Record", "parse_records"]

_TURN_MARKERS: Final = ("<|im_start|>", "<|im_end|>")


class Message(Frozen):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Record(Frozen):
    """One prompt of one arm; the id is `<task id>::<arm>`."""

    id: str
    messages: Annotated[tuple[Message, ...], Field(min_length=1)]
    meta: Mapping[str, JsonValue]


def parse_records(rows: object, *, where: str) -> tuple[Record, ...]:
    """Records from parsed JSON, an array of objects.

    Args:
        where: path that refusals name.

    Raises InputRefused on ids that alias each other, on unknown fields, or on a ChatML turn marker inside a
    message, which would become a turn of its own when rendered.
    """
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputRefused(f"{where}: records", got=type(rows).__name__, need="an array of objects")
    check_ids([row.get("id") for row in rows], what=where)
    records = tuple(parse_model(Record, row, where=f"{where}[{at}]") for at, row in enumerate(rows))
    for record in records:
        for message in record.messages:
            for marker in _TURN_MARKERS:
                if marker in message.content:
                    raise InputRefused(f"{where}: record {record.id}", got=f"{marker} inside a message")
    return records
