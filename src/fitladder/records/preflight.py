"""Preflight, written before a token is sampled, and engine metadata, written after the generation.

No text of any answer, no wall time that decides anything.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from fitladder.errors import BundleError
from fitladder.files.escaped_text import EscapedText
from fitladder.frozen import Count, Frozen, Sha256, Size
from fitladder.records.binding import Binding
from fitladder.records.bundle_key import BundleKey
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts
from fitladder.records.record_ids import check_record_ids
from fitladder.records.settings import Model, Sampling

__all__ = [
    "Counters",
    "EngineMeta",
    "GoIdentity",
    "Preflight",
    "PromptRecord",
    "Size",
]

# How far the reviewer's name is shown; self: the requester's own, where `review: self` allows it.
GoIdentity = Literal["signed", "self-asserted", "self"]


class PromptRecord(Frozen):
    """One record's prompt as the engine is given it."""

    record_id: Annotated[str, Field(min_length=1, max_length=200)]
    rendered_sha256: Sha256
    prompt_tokens: Count


class Preflight(Frozen):
    """Everything that was true when generation was about to start. Written first, never changed."""

    schema_version: Literal[1]
    key: BundleKey
    sequence: Size  # 0 for the first preflight of the root, then one more each; orders them, not the clock
    root_id: Sha256
    binding: Binding
    go_sha256: Sha256
    go_identity: GoIdentity
    resumes: tuple[Sha256, ...] = ()  # preflights of the interrupted attempts at this phase, in order
    model: Model
    sampling: Sampling
    sampling_sent: dict[str, Any]  # every parameter as the engine is told it, penalties included
    prompts: tuple[PromptRecord, ...] = Field(min_length=1)  # in the order of the rows
    k: Count
    seeds_sha256: Sha256
    engine: EngineFacts
    runtime: RuntimeFacts
    gates: tuple[dict[str, Any], ...] = Field(min_length=1)
    noted_at_s: Size  # wall clock, a note

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        try:
            check_record_ids(prompt.record_id for prompt in self.prompts)
        except BundleError as error:
            raise ValueError(f"prompts: {error}") from error
        return self

    @model_validator(mode="after")
    def _as_registered(self) -> Self:
        section = self.binding.section
        rungs = {rung["thinking_budget_tokens"]: rung for rung in section["rungs"]}
        rung = rungs.get(self.key.thinking_budget_tokens)
        if rung is None:
            raise ValueError(f"key: the binding registers the budgets {sorted(rungs)}")
        wanted = {
            "k": (self.k, section["probe_k" if self.key.phase == "probe" else "matrix_k"]),
            "prompts": (len(self.prompts), section["records_per_arm"]),
            "model": (self.model.model_dump(mode="json"), section["model"]),
            "sampling": (self.sampling.model_dump(mode="json"), section["sampling"]),
            "engine.max_num_seqs": (self.engine.max_num_seqs, rung["max_num_seqs"]),
        }
        for name, (found, need) in wanted.items():
            if found != need:
                raise ValueError(f"{name}: got {found}, the binding registers {need}")
        return self

    @property
    def attempt(self) -> int:
        """1 for a phase that was never begun before."""
        return len(self.resumes) + 1

    @property
    def records(self) -> int:
        """How many records the phase samples."""
        return len(self.prompts)

    @property
    def rows(self) -> int:
        """How many rows the bundle must have: records * k."""
        return self.records * self.k


Counters = Annotated[dict[str, Size], Field(min_length=1)]


class EngineMeta(Frozen):
    """What the generation left behind besides rows."""

    schema_version: Literal[1]
    key: BundleKey
    engine_load_us: Size
    stage1_generation_us: Size
    stage2_generation_us: Size
    counters: Counters
    warnings: tuple[EscapedText, ...]  # late compilation and the like: it falls into generation time
    log_sha256: Sha256 | None
    log_bytes: Size

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if "preemptions" not in self.counters:
            raise ValueError("counters: need preemptions; a run that cannot count them cannot show its fit")
        return self
