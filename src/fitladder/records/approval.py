"""Statements of the approval chain: an ask, a decision (GO or NO-GO), a closing and a hand-off.

Their canonical JSON is what is hashed, signed and recorded. One GO names one experiment,
one binding, one rung, one phase and one time window. Nothing here reads a clock or a file.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fitladder.canonical import canonical_sha256
from fitladder.frozen import Frozen, Identifier, Sha256
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Phase
from fitladder.records.work_queue import DEFAULT_QUEUE, WorkQueue
from fitladder.utc import Utc, parse_utc

__all__ = ["CHECKLIST", "Ask", "Closing", "Go", "Handoff", "Person", "Verdict"]

Verdict = Literal["GO", "NO-GO"]
Person = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^\S(.*\S)?$")]

# The design review, item by item: every one must be ticked for a GO, none for a NO-GO.
CHECKLIST: dict[str, str] = {
    "plan_read": "I read the plan: what runs, on what, for how long.",
    "binding_pasted": "I took the binding from the plan that I read, not from the requester.",
    "geometry_fits": "KV geometry and margin are those of the registered engine, and they fit.",
    "capture_reviewed": "The capture list is the registered one; uncovered widths are accepted or none.",
    "no_text_seen": "No decoded output of this experiment was read before this decision.",
    "one_phase_only": "This allows this one phase at this one rung once, and nothing after it.",
}


class _About(Frozen):
    """The one phase that a statement is about, under one frozen protocol."""

    schema_version: Literal[1]
    ask_id: Annotated[str, Field(min_length=1, max_length=80)]
    experiment_id: Identifier
    binding_sha256: Sha256
    thinking_budget_tokens: Annotated[int, Field(gt=0)]
    phase: Phase
    resumes_sha256: Sha256 | None = None  # preflight of the interrupted attempt that is resumed
    work_queue: WorkQueue = DEFAULT_QUEUE  # of the host that has the root

    @property
    def key(self) -> BundleKey:
        """The phase at its rung."""
        return BundleKey(
            experiment_id=self.experiment_id,
            thinking_budget_tokens=self.thinking_budget_tokens,
            phase=self.phase,
        )

    @property
    def sha256(self) -> str:
        """Digest of the canonical statement; what a preflight names as its GO."""
        return canonical_sha256(self)


class Ask(_About):
    """A launch that waits for an answer until its deadline."""

    requester: Person
    asked: Utc
    deadline: Utc


class Closing(_About):
    """Why an ask ended without a usable answer."""

    reason: str


class Go(_About):
    """A reviewer's decision about one ask. Used at most once, only within [not_before, expires]."""

    requester: Person
    reviewer: Person
    verdict: Verdict
    checklist: dict[str, bool]
    notes: Annotated[str, Field(max_length=4000)]
    not_before: Utc
    expires: Utc
    allows_window: bool  # whether a scheduled agent may take it by itself

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if parse_utc(self.expires) <= parse_utc(self.not_before):
            raise ValueError(f"expires: got {self.expires}, need later than not_before {self.not_before}")
        return self


class Handoff(_About):
    """The GPU owner lends a work pool for this one phase until `expires`."""

    work_pool: Annotated[str, Field(min_length=1)]
    owner: Person
    not_before: Utc
    expires: Utc
