"""Typed forms of a reviewer and of a GPU owner, and the statements that they become.

The form's schema is all that a server checks; whatever it lets through is checked again as a statement.
The digest to paste is a pattern without a default, so that no untouched field can stand for having read it.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from fitladder.canonical import parse_model
from fitladder.errors import GoRefused
from fitladder.frozen import Frozen
from fitladder.records.approval import CHECKLIST, Ask, Go, Handoff, Verdict
from fitladder.utc import UTC_PATTERN, format_utc, parse_utc

__all__ = ["Decision", "ask_of_schema", "decision_form", "go_of", "handoff_form", "handoff_of"]

ASK_IN_SCHEMA = "x-fitladder-ask"  # so that whoever signs needs nothing but the server

NAME = r"^\s*\S(.*\S)?\s*$"


class Decision(Frozen):
    """A filled-in review form as plain fields; the checklist apart, one box an item."""

    verdict: Verdict
    reviewer: str
    binding_sha256: str
    expires: str
    allows_window: bool
    notes: str
    signature: str
    checklist: dict[str, bool]


def decision_form(ask: Ask, expires: str) -> type[BaseModel]:
    """The review form of one ask; `expires` is the default end of the GO's window."""
    fields: dict[str, Any] = {
        # No enum: in Prefect's V1 form a list inside the dialog closes under the mouse as soon as it opens.
        "verdict": (
            str,
            Field(
                title="Verdict",
                description=f"**{ask.requester}** asks for `{ask.phase}` at {ask.thinking_budget_tokens:,} "
                "thinking tokens. Read the `plan` card under *Artifacts* first. Then type GO or NO-GO.",
                max_length=8,
                pattern=r"^(GO|NO-GO)\s*$",
            ),
        ),
        "reviewer": (
            str,
            Field(title="Reviewer", description="Your name.", min_length=1, max_length=120, pattern=NAME),
        ),
        "binding_sha256": (
            str,
            Field(
                title="Binding SHA-256",
                description="Paste it from the plan that you read.",
                max_length=72,
                pattern=rf"^\s*{ask.binding_sha256}\s*$",
            ),
        ),
    }
    for item, text in CHECKLIST.items():
        fields[item] = (bool, Field(default=False, title=text))
    fields |= {
        "expires": (
            str,
            Field(default=expires, title="GO expires (UTC)", pattern=UTC_PATTERN),
        ),
        "allows_window": (
            bool,
            Field(default=False, title="A scheduled agent may take it in its window, instead of at once"),
        ),
        "notes": (str, Field(default="", title="Notes", max_length=4000)),
        "signature": (
            str,
            Field(
                default="",
                title="Signature",
                description="From `fitladder go sign`, where reviewers have registered keys.",
                max_length=20000,
            ),
        ),
    }
    config = ConfigDict(extra="forbid", json_schema_extra={ASK_IN_SCHEMA: ask.model_dump(mode="json")})
    return create_model("Decision", __config__=config, **fields)


def ask_of_schema(schema: Mapping[str, Any]) -> Ask:
    """The ask that a waiting form's JSON schema belongs to. Raises GoRefused where it carries none."""
    return parse_model(Ask, schema.get(ASK_IN_SCHEMA), where="the form's schema", error=GoRefused)


def _decision(filled: Mapping[str, Any]) -> Decision:
    plain = {
        name: value.strip() if isinstance(value, str) else value  # text areas let a newline slip in
        for name, value in filled.items()
        if name not in CHECKLIST
    }
    checklist = {item: filled.get(item, False) for item in CHECKLIST}
    return parse_model(Decision, plain | {"checklist": checklist}, where="the review form", error=GoRefused)


def go_of(ask: Ask, filled: Mapping[str, Any]) -> tuple[Go, str | None]:
    """The statement that a filled-in form makes about its ask, and its signature. Raises GoRefused."""
    decision = _decision(filled)
    statement = {
        **ask.model_dump(mode="json", exclude={"asked", "deadline"}),
        "binding_sha256": decision.binding_sha256,
        "reviewer": decision.reviewer,
        "verdict": decision.verdict,
        "checklist": decision.checklist,
        "notes": decision.notes,
        "not_before": ask.asked,
        "expires": decision.expires,
        "allows_window": decision.allows_window,
    }
    go = parse_model(Go, statement, where="the review form", error=GoRefused)
    return go, decision.signature.strip() or None


def handoff_form(ask: Ask, owner: str, work_pool: str, expires: str) -> type[BaseModel]:
    """The GPU owner's form."""
    fields: dict[str, Any] = {
        "hands_over": (
            bool,
            Field(title=f"Lend {work_pool}", description=f"For `{ask.key}`, as {ask.requester} asks."),
        ),
        "owner": (
            str,
            Field(
                title="Owner",
                description=f"{work_pool} is owned by {owner}.",
                min_length=1,
                max_length=120,
                pattern=NAME,
            ),
        ),
        "expires": (str, Field(default=expires, title="Lent until (UTC)", pattern=UTC_PATTERN)),
        "signature": (str, Field(default="", title="Signature", max_length=20000)),
    }
    return create_model("Handover", __config__=ConfigDict(extra="forbid"), **fields)


def handoff_of(ask: Ask, work_pool: str, filled: Mapping[str, Any]) -> tuple[Handoff, str | None]:
    """The statement that a filled-in hand-off form makes. Raises GoRefused, also where it declines."""
    if filled.get("hands_over") is not True:
        raise GoRefused(f"{work_pool} was not lent for {ask.key}", got="the owner declined")
    statement = {
        **ask.model_dump(mode="json", exclude={"asked", "deadline", "requester"}),
        "work_pool": work_pool,
        "owner": str(filled.get("owner", "")).strip(),
        "not_before": format_utc(parse_utc(ask.asked)),
        "expires": str(filled.get("expires", "")).strip(),
    }
    handoff = parse_model(Handoff, statement, where="the hand-off form", error=GoRefused)
    return handoff, str(filled.get("signature", "")).strip() or None
