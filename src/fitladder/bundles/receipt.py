"""What does a finished bundle say of itself? The receipt binds every other file and is written last.

All of it but the noted time follows from the other files: `build_receipt` makes it, for the writer and for
whoever verifies. Pure; it sees records and a decoded table.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from fitladder.bundles.layout import PAYLOAD_FILES, PREFLIGHT
from fitladder.bundles.samples import SampleTable
from fitladder.bundles.schemas import Counters, EngineMeta, FileRecord, GoIdentity, Preflight, Size
from fitladder.protocol.experiment import Arm, Count, Frozen, Sha256
from fitladder.protocol.key import BundleKey

__all__ = ["Flag", "Receipt", "Totals", "build_receipt"]

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


def build_receipt(
    preflight: Preflight,
    samples: SampleTable,
    engine: EngineMeta,
    files: dict[str, FileRecord],
    *,
    noted_at_s: int,
) -> Receipt:
    """The one receipt that these contents can have. `samples` holds both id columns and all counts."""
    ids = sum(int(samples.lengths(name).sum()) for name in ("stage1_token_ids", "stage2_token_ids"))
    total = {name: int(samples.integers(name).sum()) for name in _SUMMED}
    flags: list[Flag] = []
    if engine.counters["preemptions"] > 0:
        flags.append("preempted")
    if noted_at_s < preflight.noted_at_s:
        flags.append("clock_went_back")
    return Receipt(
        schema_version=1,
        key=preflight.key,
        arm=preflight.key.arm,
        sequence=preflight.sequence,
        root_id=preflight.root_id,
        binding_sha256=preflight.binding.binding_sha256,
        generation_sha256=preflight.binding.generation_sha256,
        go_sha256=preflight.go_sha256,
        go_identity=preflight.go_identity,
        resumes=preflight.resumes,
        preflight_sha256=files[PREFLIGHT].sha256,
        files=files,
        rows=samples.rows,
        records=preflight.records,
        k=preflight.k,
        totals=Totals(
            sampled_tokens=ids,
            trimmed_tokens=total["stage1_trimmed_tokens"] + total["stage2_trimmed_tokens"],
            injected_tokens=total["injected_tokens"],
            logical_prompt_tokens=total["prompt_tokens"] + total["stage2_prompt_tokens"],
            stage1_generation_us=engine.stage1_generation_us,
            stage2_generation_us=engine.stage2_generation_us,
        ),
        counters=engine.counters,
        flags=tuple(flags),
        max_num_seqs=preflight.engine.max_num_seqs,
        capture_requested=preflight.engine.capture_requested,
        capture_resolved=preflight.engine.capture_resolved,
        seeds_sha256=preflight.seeds_sha256,
        engine_lock_sha256=preflight.runtime.engine_lock_sha256,
        noted_at_s=noted_at_s,
    )


_SUMMED = (
    "stage1_trimmed_tokens",
    "stage2_trimmed_tokens",
    "injected_tokens",
    "prompt_tokens",
    "stage2_prompt_tokens",
)
