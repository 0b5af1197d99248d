"""View of one experiment: plain frozen data with units that a page shows; nothing here reads or draws.

bundle_phases.py and history_phases.py make it; charts, pages and the Markdown twin only read it. None
means "not recorded" and is shown as that, never as zero.
"""

from dataclasses import dataclass, field
from typing import Literal

from fitladder.report.phase_view import (
    Attempt,
    Capacity,
    FileEntry,
    Gate,
    Generation,
    Graphs,
    PhaseView,
    Sample,
    SampleKind,
    Share,
    ShareName,
    Termination,
)

__all__ = [
    "Approval",
    "Attempt",
    "Capacity",
    "Comparison",
    "Decision",
    "ExperimentView",
    "FileEntry",
    "Gate",
    "Generation",
    "Graphs",
    "LogLine",
    "Narrative",
    "PhaseView",
    "RefusedWidth",
    "Sample",
    "SampleKind",
    "Selection",
    "SemanticResults",
    "Share",
    "ShareName",
    "Termination",
]


@dataclass(frozen=True)
class RefusedWidth:
    """A width that was considered and refused before any generation, kept so that readers see the refusal."""

    label: str
    max_num_seqs: int
    required_tokens: int
    kv_cache_size_tokens: int
    reason: str


@dataclass(frozen=True)
class Approval:
    """One line of the GO history."""

    sequence: int
    kind: str
    phase: str
    recorded: str
    requester: str
    reviewer: str
    identity: str
    window: str
    used_for: str
    notes: str
    sha256: str  # of a GO the statement's, which preflight and receipt name; else the line's


@dataclass(frozen=True)
class Decision:
    """What the ladder made of a phase, and what that authorises."""

    subject: str
    outcome: str
    reason: str
    next_step: str


@dataclass(frozen=True)
class Selection:
    """The end of a ladder. `selected_budget_tokens` None with `passed` False is an explicit none."""

    passed: bool
    selected_budget_tokens: int | None
    sha256: str | None
    reason: str


@dataclass(frozen=True)
class SemanticResults:
    """What the semantic gates said of a selected matrix, or why nothing was decoded."""

    passed: bool
    sentence: str
    gates: tuple[tuple[str, str, str, str], ...]
    arms: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Comparison:
    """One row of the descriptive table across experiments; it cites its source and pools nothing."""

    experiment_id: str
    label: str
    thinking_budget_tokens: int
    max_num_seqs: int
    capture: str
    required_tokens: int
    kv_cache_size_tokens: int
    sampled_tokens: int
    generation_s: float
    tokens_per_s: float
    loops: str
    unresolved: str
    answer_limit: str
    source: str  # "audit <sha256>" or "registered figures, no audit"


@dataclass(frozen=True)
class LogLine:
    """One line of the running log."""

    sequence: int
    recorded: str
    author: str
    text: str
    sha256: str


@dataclass(frozen=True)
class Narrative:
    """The authored words, their numbers already filled in from the facts and checked against them."""

    title: str
    kind: Literal["experiment", "rehearsal"]
    program_primary: str
    program_secondary: str
    near_duplicate: str
    near_duplicate_difference: str
    idea: tuple[str, ...]
    question: tuple[str, ...]
    found: tuple[str, ...]
    matters: tuple[str, ...]
    may_not_conclude: tuple[str, ...]


@dataclass(frozen=True)
class ExperimentView:
    """Everything one page shows."""

    experiment_id: str
    state: str
    review: str
    source: Literal["registered history", "verified bundles"]
    binding_sha256: str
    binding_note: str
    verdict: str
    verdict_reason: str
    rung_reached: str
    protocol: tuple[tuple[str, str], ...]
    data: tuple[tuple[str, str], ...]
    narrative: Narrative
    phases: tuple[PhaseView, ...]
    refused_widths: tuple[RefusedWidth, ...] = ()
    approvals: tuple[Approval, ...] = ()
    approvals_note: str = ""
    decisions: tuple[Decision, ...] = ()
    selection: Selection | None = None
    semantic_results: SemanticResults | None = None
    comparisons: tuple[Comparison, ...] = ()
    files: tuple[FileEntry, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()
    log: tuple[LogLine, ...] = field(default=())

    @property
    def complete(self) -> tuple[PhaseView, ...]:
        """The phases that have an audit, in ladder order."""
        return tuple(phase for phase in self.phases if phase.termination is not None)
