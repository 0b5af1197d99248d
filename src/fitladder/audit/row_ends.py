"""How one row of token ids ended: cut, by itself, by a forced close; and what of it is padding.

Decided from ids, from ids that the caller names, and from the finish reason that the file states.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["EndIds", "EndKind", "RowEnd", "end_of_row"]

TokenIds = npt.NDArray[np.int32]
EndKind = Literal["cut", "forced close", "natural", "other"]
CUT = frozenset(
    {"length", "max_tokens", "max_new_tokens", "max_length", "model_length", "model_context_window"}
)
NATURAL = frozenset(
    {"stop", "eos", "eos_token", "end_turn", "stop_sequence", "stop_str", "tool_calls", "tool_use"}
    | {"tool_call", "function_call", "stop_token", "finished", "completed"}
)


@dataclass(frozen=True)
class EndIds:
    """Ids with a meaning of their own, as the caller names them; empty or None: not looked for.

    `pad_id` fills up the end of shorter rows. `close_ids`, in this order, are what a forced close writes into
    a row, and a natural close does not. `eos_ids` end a row by itself.
    """

    pad_id: int | None = None
    close_ids: tuple[int, ...] = ()
    eos_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class RowEnd:
    """The end of one row. `by` says what decided the kind.

    `tokens`: ids without padding. `judged_tokens`: ids that the tail rule is for, up to a forced close.
    `close_token`: where the first forced close begins, else None.
    """

    kind: EndKind
    by: str
    tokens: int
    judged_tokens: int
    padding_tokens: int
    close_token: int | None


def end_of_row(token_ids: TokenIds, finish: str | None, ends: EndIds) -> RowEnd:
    """The end of one row. A row that nothing is known of is taken as cut."""
    body = _without_padding(token_ids, ends.pad_id)
    padding = len(token_ids) - len(body)
    close = _find(body, ends.close_ids)
    if close is not None:
        return RowEnd("forced close", "close ids", len(body), close, padding, close)
    kind, by = _kind(body, finish, ends, padding)
    return RowEnd(kind, by, len(body), len(body), padding, None)


def _kind(body: TokenIds, finish: str | None, ends: EndIds, padding: int) -> tuple[EndKind, str]:
    if finish is not None:
        word = finish.lower()
        return "cut" if word in CUT else "natural" if word in NATURAL else "other", f"finish reason {finish}"
    if ends.eos_ids:
        # where EOS is the padding, too, the first of the removed ids was the EOS
        is_ended = (len(body) and int(body[-1]) in ends.eos_ids) or (padding and ends.pad_id in ends.eos_ids)
        return ("natural", "EOS id") if is_ended else ("cut", "no EOS id at the end")
    return "cut", "nothing known: taken as cut"


def _without_padding(token_ids: TokenIds, pad_id: int | None) -> TokenIds:
    if pad_id is None or not len(token_ids) or token_ids[-1] != pad_id:
        return token_ids
    others = np.flatnonzero(token_ids != pad_id)
    return token_ids[: int(others[-1]) + 1 if len(others) else 0]


def _find(body: TokenIds, wanted: tuple[int, ...]) -> int | None:
    """Where `wanted` first stands in the ids, whole and in order."""
    if not wanted or len(body) < len(wanted):
        return None
    at = np.flatnonzero(body[: len(body) - len(wanted) + 1] == wanted[0])
    for place, token_id in enumerate(wanted[1:], start=1):
        at = at[body[at + place] == token_id]
    return int(at[0]) if len(at) else None
