"""A cell's engine process without an engine: counts as simulated, durations as scripted.

    python scripted_cell.py LOG SCRIPT.json REQUEST.json EVENTS_FD

SCRIPT.json by cell name: {"step_us": per step (1000), "fail": {"build" | "warm" | run number: message},
"hang": run number, "preemptions": added to the simulated ones, "facts": overrides}. LOG gets a line a run.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from fitladder.canonical import sha256_file
from fitladder.capacity.admission import spaced_admission
from fitladder.capacity.pool import Pool
from fitladder.capacity.simulator import Request, simulate
from fitladder.engine.child.main import Commands, Events, serve_process
from fitladder.engine.messages import STOP, ReportedFacts
from fitladder.errors import EngineFailed
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts
from fitladder.study.messages import CELL_COMMANDS, MeasuredRun, Ready
from fitladder.study.request import CellRequest, load_cell_request

BLOCK = 128
SEQUENCE_US = 50  # of each sequence in a step


def facts(request: CellRequest, changed: dict[str, Any]) -> EngineFacts:
    args, cell = request.engine_args, request.cell
    sizes = {"exact": cell.capture_sizes, "implicit": (1, 2, 4), "none": ()}[cell.capture]
    values = {
        "engine": "scripted", "engine_version": "1", "device": "cpu", "device_name": "scripted",
        "max_model_len_tokens": args["max_model_len"], "max_num_seqs": cell.width,
        "max_num_batched_tokens": args["max_num_batched_tokens"], "block_size_tokens": BLOCK,
        "num_blocks": cell.pool_blocks, "null_blocks": 1, "mamba_groups": 0,
        "kv_cache_size_tokens": cell.pool_blocks * BLOCK, "max_concurrency": "1.0",
        "capture_requested": cell.capture_sizes, "capture_max_requested": None, "capture_resolved": sizes,
        "graph_mode": "NONE", "decode_graph_mode": "NONE", "has_full_graphs": False,
        "enforce_eager": cell.capture == "none", "enable_prefix_caching": False, "async_scheduling": False,
        "engine_seed": 0, "dtype": "float32",
        "requested_args": args, "resolved_args": {}, "load_s": 0.0,
    }  # fmt: skip
    return EngineFacts(**values | changed)


def runtime(request: CellRequest) -> RuntimeFacts:
    lock = request.engine_lock_path
    return RuntimeFacts(
        python="3", platform="scripted", packages={}, pip_check=(),
        engine_lock_sha256=None if lock is None else sha256_file(Path(lock)),
        device_driver=None, cuda=None, environment=request.environment,
    )  # fmt: skip


def run(request_path: Path, events: Events, commands: Commands) -> int:
    log, script = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    request = load_cell_request(request_path)
    cell = request.cell
    mine: dict[str, Any] = script.get(cell.name, {})
    fail = mine.get("fail", {})
    if "build" in fail:
        raise EngineFailed(fail["build"])
    events.send(ReportedFacts(facts=facts(request, mine.get("facts", {})), runtime=runtime(request)))
    if "warm" in fail:
        raise EngineFailed(fail["warm"])
    events.send(Ready())
    lengths, sampled = request.workload.prompt_lengths(cell.samples), request.workload.sampled_tokens
    limits = {
        "max_num_seqs": cell.width,
        "max_num_batched_tokens": request.engine_args["max_num_batched_tokens"],
    }
    pool = Pool(cell.pool_blocks - 1, BLOCK)
    policy = (
        None
        if cell.admission == "worst_case"
        else spaced_admission(cell.admission, pool, lengths, max_new_tokens=sampled, **limits)
    )
    done = simulate(
        [Request(one, sampled) for one in lengths], pool, policy=policy, max_new_tokens=sampled, **limits
    )
    number = 0
    while (word := commands.get()) != STOP:
        number += 1
        if str(number) in fail:
            raise EngineFailed(fail[str(number)])
        if mine.get("hang") == number:
            time.sleep(600)
        with log.open("a") as stream:
            stream.write(f"{cell.name} {word}\n")
        step_us = mine.get("step_us", 1000)
        events.send(
            MeasuredRun(
                kind="bare" if word == "bare" else "ours",
                generation_us=done.steps * step_us + done.sampled_tokens * SEQUENCE_US + number,
                sampled_tokens=done.sampled_tokens,
                counters={
                    "preemptions": done.preemptions + mine.get("preemptions", 0),
                    "recomputed_tokens": done.recomputed_tokens,
                    "scheduled_tokens": done.scheduled_tokens,
                    "steps": done.steps,
                },
                warnings=(),
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(serve_process(run, sys.argv[3:], words=CELL_COMMANDS))
