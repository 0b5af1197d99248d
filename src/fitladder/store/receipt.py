"""Making a receipt from the other files of a bundle, which it binds; it is written last.

All of it but the noted time follows from the other files: `build_receipt` makes it, for the writer and for
whoever verifies. Pure; it sees records and a decoded table.
"""

from fitladder.files.file_record import FileRecord
from fitladder.records.layout import PREFLIGHT
from fitladder.records.preflight import EngineMeta, Preflight
from fitladder.records.receipt import Flag, Receipt, Totals
from fitladder.sampling.parquet import SampleTable

__all__ = ["build_receipt"]


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
