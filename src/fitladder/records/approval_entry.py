"""Entries of the approval chain: one recorded ask, answer or hand-off a line."""

from typing import Any, Literal

from fitladder.canonical import parse_model
from fitladder.errors import GoRefused
from fitladder.files.jsonl_chain import (
    Link,
)
from fitladder.frozen import Frozen
from fitladder.records.approval import Ask, Closing, Go, Handoff
from fitladder.utc import Utc

__all__ = ["STATEMENT_OF_KIND", "Draft", "Entry", "Kind", "Statement"]

Kind = Literal["asked", "go", "no_go", "refused", "timed_out", "expired", "handoff"]


Statement = Ask | Go | Handoff | Closing


STATEMENT_OF_KIND: dict[Kind, type[Ask] | type[Go] | type[Handoff] | type[Closing]] = {
    "asked": Ask,
    "go": Go,
    "no_go": Go,
    "refused": Closing,
    "timed_out": Closing,
    "expired": Closing,
    "handoff": Handoff,
}


class Draft(Frozen):
    """An entry before it has a place in the chain. `identity` says how sure we are who spoke."""

    kind: Kind
    recorded: Utc
    statement: dict[str, Any]
    signature: str | None
    identity: Literal["signed", "self-asserted", "self", "derived"]


class Entry(Link, Draft):
    """One line of the chain."""

    def parsed(self) -> Statement:
        """The statement as its own model."""
        return parse_model(
            STATEMENT_OF_KIND[self.kind],
            self.statement,
            where=f"approval line {self.sequence}",
            error=GoRefused,
        )
