"""View of one phase at one rung: plain frozen data with units.

None means "not recorded" and is shown as that, never as zero.
"""

from dataclasses import dataclass
from typing import Literal

from fitladder.records.generation_time import tokens_per_s

__all__ = [
    "Attempt",
    "Capacity",
    "FileEntry",
    "Gate",
    "Generation",
    "Graphs",
    "PhaseView",
    "Sample",
    "SampleKind",
    "Share",
    "ShareName",
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
    tokens_decide: bool = True  # False under the block rule, where the token figures are a record

    @property
    def demand_and_pool_tokens(self) -> tuple[int, int]:
        """What decides, in tokens: under the block rule whole blocks, else the token figures."""
        if self.tokens_decide or self.required_blocks is None or self.usable_blocks is None:
            return self.required_tokens, self.kv_cache_size_tokens
        return self.required_blocks * self.block_size_tokens, self.usable_blocks * self.block_size_tokens

    @property
    def fits(self) -> bool:
        """Whether no figure that decides, and no counted block figure, has a negative margin."""
        by_tokens = self.margin_tokens >= 0 or not self.tokens_decide
        return by_tokens and (self.margin_blocks is None or self.margin_blocks >= 0)


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
        return tokens_per_s(self.sampled_tokens, self.generation_s) or 0.0


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
class Attempt:
    """An interrupted attempt at a phase: no row of it was kept, its GO is used."""

    number: int
    folder: str  # below the artifact root
    preflight: FileEntry
    go_sha256: str | None


@dataclass(frozen=True)
class PhaseView:
    """One phase at one rung: its newest attempt, and those before it."""

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
    folder: str | None = None  # below the artifact root
    interrupted: tuple[Attempt, ...] = ()  # attempts before this one, oldest first

    @property
    def attempt(self) -> int:
        """1 for a phase that was never begun before."""
        return len(self.interrupted) + 1

    @property
    def label(self) -> str:
        """`probe at 49,152`."""
        return f"{self.phase} at {self.thinking_budget_tokens:,}"
