"""The receipt: completion mark of a bundle, binding every other file by size and SHA-256."""

from typing import Literal, Self

from pydantic import Field, model_validator

from fitladder.files.file_record import FileRecord
from fitladder.frozen import Count, Frozen, Sha256, Size
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Arm
from fitladder.records.layout import PAYLOAD_FILES, PREFLIGHT
from fitladder.records.preflight import Counters, GoIdentity

__all__ = ["Flag", "Receipt", "Totals"]

Flag = Literal["preempted", "clock_went_back"]


class Totals(Frozen):
    """Tokens and generation time of the whole phase; model load is in none of them.

    `sampled` counts what both stages kept, `trimmed` what was cut from the first model EOS on, `injected`
    the forced close sequences, `logical_prompt` every sample's prompt and, where stage 2 ran, its prompt.
    """

    sampled_tokens: Size
    trimmed_tokens: Size
    injected_tokens: Size
    logical_prompt_tokens: Size
    stage1_generation_us: Size
    stage2_generation_us: Size


class Receipt(Frozen):
    """The completion mark of a bundle."""

    schema_version: Literal[1]
    key: BundleKey
    arm: Arm
    sequence: Size
    root_id: Sha256
    binding_sha256: Sha256
    generation_sha256: Sha256  # the part of the binding that rows answer to
    go_sha256: Sha256
    go_identity: GoIdentity
    resumes: tuple[Sha256, ...] = ()  # the preflights of interrupted attempts; their rows were never kept
    preflight_sha256: Sha256
    files: dict[str, FileRecord]
    rows: Count
    records: Count
    k: Count
    totals: Totals
    counters: Counters
    flags: tuple[Flag, ...]  # preempted: the run did not fit after all, and the rung carries that mark
    max_num_seqs: Size
    capture_requested: tuple[Size, ...] | None
    capture_resolved: tuple[Size, ...] | None
    seeds_sha256: Sha256
    engine_lock_sha256: Sha256 | None
    noted_at_s: Size = Field(description="wall clock, a note")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if sorted(self.files) != sorted(PAYLOAD_FILES):
            raise ValueError(f"files: got {sorted(self.files)}, need {sorted(PAYLOAD_FILES)}")
        if self.files[PREFLIGHT].sha256 != self.preflight_sha256:
            raise ValueError("preflight_sha256: differs from files")
        if self.rows != self.records * self.k:
            raise ValueError(f"rows: got {self.rows}, need {self.records} records x {self.k}")
        return self
