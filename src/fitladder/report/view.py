"""What does a page show of one experiment? Plain frozen data with units; nothing here reads or draws.

Loaders fill it (from_history.py, from_audits.py), charts, pages and the Markdown twin only read it. None
means "not recorded" and is shown as that, never as zero.
"""

from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "Answers",
    "Approval",
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
    "Plan",
    "Sample",
    "Selection",
    "Share",
    "Termination",
]

PhaseState = Literal["not run", "preflight only", "complete"]
ShareName = Literal["loops", "unresolved", "answer limit"]
SampleKind = Literal[
    "complete", "periodic loop", "unresolved contact", "ended inside thinking", "too short to tell"
]


@dataclass(frozen=True)
class Share:
    """One termination share: count of total, its 95 % interval as fractions, its registered ceiling."""

    name: ShareName
    count: int
    total: int
    low: float
    high: float
    ceiling: float
    ceiling_text: str  # "at most 25 %" or "below 5 %"
    within: bool


@dataclass(frozen=True)
class Sample:
    """One row of the loop timeline. `onset_token` counts from the first thinking token (0)."""

    sample_id: str
    kind: SampleKind
    thinking_tokens: int
    period_tokens: int | None
    matched: int | None
    compared: int | None
    onset_token: int | None
    burned_tokens: int | None


@dataclass(frozen=True)
class Termination:
    """The content-blind audit of one complete phase. `rows` is empty where history kept only totals."""

    samples: int
    boundary_contacts: int
    forced_closes: int
    answer_restarts_after_natural_close: int
    shares: tuple[Share, ...]
    adequate: bool
    periods_tokens: tuple[int, ...]  # sorted, one a loop
    rows: tuple[Sample, ...]
    burned_tokens: int | None
    thinking_tokens: int | None
    tail_tokens: int
    max_period_tokens: int
    notes: tuple[str, ...] = ()

    def share(self, name: ShareName) -> Share:
        """The share of this name."""
        return next(share for share in self.shares if share.name == name)


@dataclass(frozen=True)
class Capacity:
    """Demand against the live pool, by the token rule and, where it was counted, by blocks."""

    kv_cache_size_tokens: int
    block_size_tokens: int
    active_sequences: int
    rounded_tokens_per_sequence: int
    required_tokens: int
    margin_tokens: int
    usable_blocks: int | None = None
    required_blocks: int | None = None
    margin_blocks: int | None = None

    @property
    def fits(self) -> bool:
        """Whether no rule that was counted has a negative margin."""
        return self.margin_tokens >= 0 and (self.margin_blocks is None or self.margin_blocks >= 0)


@dataclass(frozen=True)
class Graphs:
    """Asked and resolved CUDA-graph capture sizes; `resolved` None means the history does not say."""

    mode: str  # exact, implicit, none
    requested: tuple[int, ...] | None
    max_requested: int | None
    resolved: tuple[int, ...] | None
    uncovered: str  # "17-19", "none"
    decode_mode: str | None
    full: bool | None


@dataclass(frozen=True)
class Generation:
    """Sampled tokens of both stages over generation seconds; model load is in neither."""

    sampled_tokens: int
    generation_s: float
    load_s: float | None
    preemptions: int | None
    recomputed_tokens: int | None
    warnings: tuple[str, ...] = ()

    @property
    def tokens_per_s(self) -> float:
        """Sampled tokens a second; 0 where no time was taken."""
        return self.sampled_tokens / self.generation_s if self.generation_s > 0 else 0.0


@dataclass(frozen=True)
class Gate:
    """One live gate that let the phase pass, with the numbers it compared, in recorded order."""

    name: str
    numbers: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FileEntry:
    """An artifact by its bytes."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class PhaseView:
    """One phase at one rung."""

    thinking_budget_tokens: int
    phase: str
    arm: str
    state: PhaseState
    k: int
    records: int
    max_num_seqs: int
    capacity: Capacity | None = None
    graphs: Graphs | None = None
    generation: Generation | None = None
    termination: Termination | None = None
    gates: tuple[Gate, ...] = ()
    files: tuple[FileEntry, ...] = ()
    go_sha256: str | None = None
    go_identity: str | None = None
    binding_sha256: str | None = None
    audit_sha256: str | None = None
    flags: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """`probe at 49,152`."""
        return f"{self.phase} at {self.thinking_budget_tokens:,}"


@dataclass(frozen=True)
class Plan:
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
    notes: str
    sha256: str


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
class Answers:
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
    refused_plans: tuple[Plan, ...] = ()
    approvals: tuple[Approval, ...] = ()
    approvals_note: str = ""
    decisions: tuple[Decision, ...] = ()
    selection: Selection | None = None
    answers: Answers | None = None
    comparisons: tuple[Comparison, ...] = ()
    files: tuple[FileEntry, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()
    log: tuple[LogLine, ...] = field(default=())

    @property
    def complete(self) -> tuple[PhaseView, ...]:
        """The phases that have an audit, in ladder order."""
        return tuple(phase for phase in self.phases if phase.termination is not None)
