"""Two-stage generation of one request on a built engine: thinking, then the answers of closed samples.

Drives any `Engine` (sampling/engine_protocol.py), keeps rows and counts in memory and writes nothing.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from fitladder.engine.messages import GenerationMetadata
from fitladder.engine.request import EngineRequest
from fitladder.records.generation_time import s_to_us
from fitladder.records.sample import SampleRow
from fitladder.sampling.engine_protocol import Completion, Engine, Progress, SampleRequest
from fitladder.sampling.two_stage import close_stage1, finish, plan_stage1

__all__ = ["Generation", "run_generation"]


@dataclass(frozen=True)
class Generation:
    """Sample rows in record order, then sample order, with the metadata of their generation."""

    rows: list[SampleRow]
    metadata: GenerationMetadata


def run_generation(
    engine: Engine, request: EngineRequest, on_progress: Callable[[Literal[1, 2], Progress], None]
) -> Generation:
    """Sample both stages of a request.

    Args:
        engine: built and idle.
        on_progress: gets the stage (1 thinking, 2 answer) and the counts since it began.

    Returns one row a sample. A stage's time is that of `Engine.generate` alone; stage 2 is not run, and takes
    0 us, where no sample needs an answer. Raises EngineFailed on completions that no finished sample can
    have.
    """
    records, thinking, sampling = request.engine_records(), request.thinking, request.sampling
    asked = plan_stage1(
        records,
        k=request.k,
        thinking_budget_tokens=request.thinking_budget_tokens,
        run_seed=sampling.run_seed,
    )
    completions, stage1_us = _timed(engine, asked, lambda progress: on_progress(1, progress))
    samples = close_stage1(records, asked, completions, thinking=thinking, sampling=sampling)
    open_samples = [sample.answer for sample in samples if sample.answer is not None]
    answers, stage2_us = _timed(engine, open_samples, lambda progress: on_progress(2, progress))
    rows = finish(samples, answers, thinking=thinking)
    return Generation(
        rows,
        GenerationMetadata(
            engine_load_us=s_to_us(engine.facts().load_s),
            stage1_generation_us=stage1_us,
            stage2_generation_us=stage2_us,
            counters=engine.counters() | _row_counters(rows),
            warnings=tuple(engine.warnings()),
        ),
    )


def _timed(
    engine: Engine, requests: Sequence[SampleRequest], on_progress: Callable[[Progress], None]
) -> tuple[list[Completion], int]:
    if not requests:
        return [], 0
    started = time.perf_counter()
    completions = engine.generate(requests, on_progress)
    return completions, s_to_us(time.perf_counter() - started)


def _row_counters(rows: Sequence[SampleRow]) -> dict[str, int]:
    seen: set[tuple[str, bytes]] = set()
    for row in rows:
        seen.add((row.record_id, hashlib.sha256(row.stage1_token_ids.tobytes()).digest()))
    return {
        "sampled_tokens": sum(len(row.stage1_token_ids) + len(row.stage2_token_ids) for row in rows),
        "trimmed_tokens": sum(row.stage1_trimmed_tokens + row.stage2_trimmed_tokens for row in rows),
        "injected_tokens": sum(row.injected_tokens for row in rows),
        "logical_prompt_tokens": sum(row.prompt_tokens + row.stage2_prompt_tokens for row in rows),
        "repeated_samples": len(rows) - len(seen),
    }
