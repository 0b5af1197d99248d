"""Rules by which a GO, and a hand-off, may be used here and now for one phase.

Every rule says what it got and what it needs. The clock, the used GOs, the binding and the registry are
handed in; nothing is looked up, so that the launch and the GPU host apply exactly the same rules.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NoReturn

from fitladder.approval.signature import check_signature
from fitladder.errors import GoRefused
from fitladder.records.approval import CHECKLIST, Go, Handoff
from fitladder.records.approval_entry import Entry
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Experiment
from fitladder.records.registry import Registry, Reviewer
from fitladder.records.work_queue import DEFAULT_QUEUE
from fitladder.utc import format_utc, parse_utc

__all__ = [
    "Identity",
    "Situation",
    "check_handed_over",
    "check_handoff",
    "check_statement",
    "check_usable",
    "find_go",
    "owner_to_ask",
    "same_person",
]

# self: the requester said it, where `review: self` allows that; self-asserted: nobody proved the name.
Identity = Literal["signed", "self-asserted", "self"]


def same_person(left: str, right: str) -> bool:
    """Whether two names differ only in case, blanks or the way accents are composed."""

    def plain(name: str) -> str:
        return " ".join(unicodedata.normalize("NFKC", name).casefold().split())

    return plain(left) == plain(right)


def _refuse(go: Go | Handoff, what: str, got: object, need: object, do: str | None = None) -> NoReturn:
    raise GoRefused(f"this {type(go).__name__} for {go.key} {what}", got=got, need=need, do=do)


@dataclass(frozen=True)
class Situation:
    """What a GO or a hand-off is checked against, as the caller read it from disk and clock.

    `key`: the phase that would run.
    """

    key: BundleKey
    binding_sha256: str
    now: datetime
    experiment: Experiment
    registry: Registry
    used_go_sha256s: frozenset[str]  # every GO that some preflight names
    resumes_sha256: str | None = None  # preflight of the interrupted attempt that would be followed now
    work_queue: str = DEFAULT_QUEUE  # the one that this host serves


def _check_about(go: Go | Handoff, here: Situation) -> None:
    key = here.key
    again = (
        f"ask again: `fitladder launch {key.experiment_id} --phase {key.phase} "
        f"--budget {key.thinking_budget_tokens}{' --resume' if here.resumes_sha256 else ''}`"
    )
    if go.key != key:
        _refuse(go, "is for something else", go.key, key, again)
    if go.work_queue != here.work_queue:
        _refuse(
            go, "is for another host", f"work queue {go.work_queue}", f"work queue {here.work_queue}", again
        )
    if go.binding_sha256 != here.binding_sha256:
        _refuse(
            go,
            "was given under another binding: edited after approval, or mistyped",
            go.binding_sha256,
            here.binding_sha256,
            again,
        )
    if go.resumes_sha256 != here.resumes_sha256:
        _refuse(
            go,
            "is for another attempt at it",
            f"after {go.resumes_sha256 or 'no interrupted attempt'}",
            f"after {here.resumes_sha256 or 'no interrupted attempt'}",
            again,
        )
    if here.now < parse_utc(go.not_before):
        _refuse(go, "is not valid yet", format_utc(here.now), f"at or after {go.not_before}")
    if here.now > parse_utc(go.expires):
        _refuse(go, "has expired", format_utc(here.now), f"at or before {go.expires}", again)


def _check_spoken(
    statement: Go | Handoff, speaker: str, signature: str | None, reviewers: tuple[Reviewer, ...]
) -> Identity:
    """A registered key makes a signature necessary; without one the name is only asserted."""
    if not reviewers:
        if signature:
            _refuse(statement, "is signed, but no key is registered for it", "a signature", "none")
        return "self-asserted"
    if not signature:
        _refuse(
            statement,
            "is not signed",
            "no signature",
            f"one by {speaker!r}",
            "sign it: `fitladder go sign`",
        )
    check_signature(statement, signature, speaker, reviewers)
    return "signed"


def check_statement(go: Go, signature: str | None, here: Situation) -> Identity:
    """Check everything about a GO but its use: phase, binding, window, checklist, reviewer, signature.

    `signature`: detached, or None where none came with it. Returns how the reviewer's name is proven. Raises
    GoRefused with what it got and what it needs.
    """
    if go.verdict != "GO":
        _refuse(go, "allows nothing", go.verdict, "GO")
    _check_about(go, here)
    if set(go.checklist) != set(CHECKLIST) or not all(go.checklist.values()):
        missing = [item for item in CHECKLIST if not go.checklist.get(item)]
        unknown = sorted(set(go.checklist) - set(CHECKLIST))
        _refuse(go, "has an incomplete checklist", f"{', '.join([*missing, *unknown])} open", "every item")
    if here.experiment.review == "independent" and same_person(go.reviewer, go.requester):
        _refuse(
            go,
            "was given by its requester",
            f"reviewer {go.reviewer!r}, requester {go.requester!r}",
            "an independent reviewer (`review: independent`)",
        )
    spoken = _check_spoken(go, go.reviewer, signature, here.registry.reviewers)
    return "self" if same_person(go.reviewer, go.requester) else spoken


def check_usable(go: Go, signature: str | None, here: Situation) -> Identity:
    """`check_statement`, and not used before. Raises GoRefused with what it got and what it needs."""
    if go.sha256 in here.used_go_sha256s:
        _refuse(
            go, "was used already", go.sha256, "a GO that no preflight names", "one GO is one use; ask again"
        )
    return check_statement(go, signature, here)


def check_handoff(handoff: Handoff, signature: str | None, work_pool: str, here: Situation) -> Identity:
    """Check that the owner of `work_pool`, and nobody else, lent it for this phase and this moment.

    Raises GoRefused.
    """
    owner = here.registry.gpu_owners.get(work_pool)
    _check_about(handoff, here)
    if handoff.work_pool != work_pool:
        _refuse(handoff, "is for another work pool", handoff.work_pool, work_pool)
    if owner is None or not same_person(handoff.owner, owner):
        _refuse(handoff, "is not by the owner", handoff.owner, owner)
    keys = tuple(reviewer for reviewer in here.registry.reviewers if same_person(reviewer.name, owner))
    return _check_spoken(handoff, keys[0].name if keys else owner, signature, keys)


def owner_to_ask(registry: Registry, work_pool: str, requester: str) -> str | None:
    """Whose hand-off a launch needs: the pool's owner, unless that is the requester or nobody."""
    owner = registry.gpu_owners.get(work_pool)
    return None if owner is None or same_person(owner, requester) else owner


def check_handed_over(entries: Iterable[Entry], go: Go, work_pool: str, here: Situation) -> None:
    """Check that the hand-off which `work_pool` needs is in the chain for this very ask. Raises GoRefused."""
    owner = owner_to_ask(here.registry, work_pool, go.requester)
    if owner is None:
        return
    for entry in entries:
        statement = entry.parsed()
        if isinstance(statement, Handoff) and statement.ask_id == go.ask_id:
            check_handoff(statement, entry.signature, work_pool, here)
            return
    raise GoRefused(
        f"{go.key}: work pool {work_pool} was not handed over",
        got="a GO without the hand-off",
        need=f"the hand-off by {owner}",
    )


def find_go(entries: Iterable[Entry], go_sha256: str) -> tuple[Go, Entry]:
    """The recorded GO with this digest. Raises GoRefused where the chain holds none."""
    for entry in entries:
        if entry.kind == "go" and isinstance(go := entry.parsed(), Go) and go.sha256 == go_sha256:
            return go, entry
    raise GoRefused("no such GO in the approval chain", got=go_sha256, need="a recorded GO")
