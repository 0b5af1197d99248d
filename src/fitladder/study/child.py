"""Engine process of one cell: build, report facts, warm up, then run the workload whenever it is told.

    python -m fitladder.study.child REQUEST.json EVENTS_FD      (started by study/process.py)

Imports vllm through the engine; runs in the engine environment.
"""

import sys
import time
from pathlib import Path

from fitladder.engine.child.main import Commands, Events, serve_process
from fitladder.engine.child.vllm_engine import VllmEngine
from fitladder.engine.messages import STOP, LiveCounts, ReportedFacts
from fitladder.errors import EngineFailed
from fitladder.records.generation_time import s_to_us
from fitladder.sampling.engine_protocol import Progress, SampleRequest
from fitladder.study.messages import CELL_COMMANDS, MeasuredRun, Ready
from fitladder.study.plan import Kind
from fitladder.study.request import CellRequest, load_cell_request
from fitladder.study.warmup import warmup_runs

__all__: list[str] = []


def _run(request_path: Path, events: Events, commands: Commands) -> int:
    request = load_cell_request(request_path)
    engine = VllmEngine(
        request.engine_args,
        parameters=request.parameters(),
        admission=request.cell.admission,
        environment=request.environment,
        lock_path=request.engine_lock_path,
        progress_interval_s=request.progress_interval_s,
    )
    try:
        events.send(ReportedFacts(facts=engine.facts(), runtime=engine.runtime()))
        _warm_up(engine, request)
        events.send(Ready())
        samples = request.requests(request.workload.sampled_tokens)
        while (word := commands.get()) != STOP:
            _measure(engine, request, samples, "bare" if word == "bare" else "ours", events)
    finally:
        engine.close()
    return 0


def _warm_up(engine: VllmEngine, request: CellRequest) -> None:
    """Run the workload with few tokens; on CUDA also batches that compile the kernels of every width."""
    few = request.requests(request.workload.warmup_tokens)
    engine.generate(few, _ignore)
    if engine.facts().device == "cuda":
        engine.generate_bare(few)
        for one in warmup_runs(request.workload, request.sampling, request.cell.width):
            engine.generate(one.requests, _ignore, one.policy)


def _measure(
    engine: VllmEngine, request: CellRequest, samples: list[SampleRequest], kind: Kind, events: Events
) -> None:
    before, warned = engine.counters(), len(engine.warnings())
    started = time.perf_counter()
    if kind == "bare":
        sampled = engine.generate_bare(samples)
    else:
        completions = engine.generate(samples, lambda one: events.send(LiveCounts(stage=1, progress=one)))
        sampled = sum(len(completion.token_ids) for completion in completions)
    generation_us = s_to_us(time.perf_counter() - started)
    need = len(samples) * request.workload.sampled_tokens
    if sampled != need:
        raise EngineFailed("samples ended early", got=f"{sampled} tokens", need=f"{need}, EOS being ignored")
    after = engine.counters()
    events.send(
        MeasuredRun(
            kind=kind,
            generation_us=generation_us,
            sampled_tokens=sampled,
            counters={name: after[name] - before[name] for name in after if name != "widest_step"},
            warnings=tuple(engine.warnings()[warned:]),
        )
    )


def _ignore(_: Progress) -> None:
    """Ignores the live counts of a warm-up."""


if __name__ == "__main__":
    sys.exit(serve_process(_run, sys.argv[1:], words=CELL_COMMANDS))
