"""Everything that a phase and its engine process say to each other once the process runs.

    parent                                   child
    REQUEST.json (engine/request.py)  ->     reads it, checks its code, builds the engine
                                      <-     `facts`: engine and environment as they are
    `generate` or `stop`              ->
                                      <-     `progress`, about once a second
                                      <-     `done`: where the samples lie, their SHA-256, counters
                       at any time    <-     `failed`: one line, and the process ends

Commands are words, one a line, on the child's standard input; its end means that the parent is gone. Events
are JSON objects, one a line, on a descriptor of their own: nothing that a library prints can pass for one.
The process of a study's cell says `ready` and `measured` besides (study/messages.py).
"""

import json
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from fitladder.frozen import Count, Frozen, Sha256, Size
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts
from fitladder.sampling.engine_protocol import Progress

__all__ = [
    "GENERATE",
    "STOP",
    "Event",
    "Failed",
    "GenerationMetadata",
    "GenerationResult",
    "LiveCounts",
    "ReportedFacts",
    "event_name",
    "render_event",
]

GENERATE: Final = "generate"
STOP: Final = "stop"


class Event(Frozen):
    """One line of the child; `event` names its kind."""

    event: str


class ReportedFacts(Event):
    """The engine is built: what it and its environment are. The live gates decide on these alone."""

    event: Literal["facts"] = "facts"
    facts: EngineFacts
    runtime: RuntimeFacts


class LiveCounts(Event):
    """Counts since the stage began; stage 1 is thinking, stage 2 the answer."""

    event: Literal["progress"] = "progress"
    stage: Literal[1, 2]
    progress: Progress


class GenerationMetadata(Frozen):
    """Times in microseconds, counters and warnings of one generation.

    counters: the engine's own (preemptions, scheduled_tokens, prompt_tokens, generated_tokens, steps, ...)
    and those of the rows: sampled_tokens (kept ids of both stages), trimmed_tokens, injected_tokens,
    logical_prompt_tokens (prompts of both stages), repeated_samples (rows whose stage-1 ids equal those of
    an earlier sample of their record, found by SHA-256). warnings: lines about late compilation.
    """

    engine_load_us: Size
    stage1_generation_us: Size
    stage2_generation_us: Size
    counters: dict[str, Size]
    warnings: tuple[str, ...]


class GenerationResult(Event):
    """The samples are on disk: a Parquet file of `rows` rows, its digest, and how it was made."""

    event: Literal["done"] = "done"
    samples_path: Path
    samples_sha256: Sha256
    rows: Count
    metadata: GenerationMetadata


class Failed(Event):
    """The child's last event before it ends: the name of the exception and its one-line message."""

    event: Literal["failed"] = "failed"
    kind: str = Field(min_length=1)
    message: str


def event_name(kind: type[Event]) -> str:
    """The value of `event` that marks this kind on the wire."""
    return str(kind.model_fields["event"].default)


def render_event(event: Event) -> str:
    """The event as one line of ASCII JSON, its newline included."""
    return json.dumps(event.model_dump(mode="json"), ensure_ascii=True) + "\n"
