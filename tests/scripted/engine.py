"""A scripted engine: the child protocol of the real one without vllm, for tests of everything around it.

    python tests/scripted/engine.py [SCRIPT.json] REQUEST.json EVENTS_FD

Ids are a function of (seed, prompt, script), so that a run repeats exactly. SCRIPT.json (or the default) is
an object; see `Script` for its fields. Faults happen where the field says: `facts`, `stage1`, `stage2`.
"""

import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from fitladder.engine.child.main import serve
from fitladder.engine.request import EngineRequest
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts
from fitladder.sampling.engine_protocol import Completion, Progress, SampleRequest


@dataclass(frozen=True)
class Script:
    """What the engine does. Outcomes are dealt to stage-1 samples in turn, by sample number modulo.

    outcomes: each one of
        "loop:P"   P distinct ids, then a cycle of P ids to the budget
        "drift"    ids without any period to the budget
        "close:T"  T ids, the close marker, 5 answer ids, a model EOS
        "open:T"   T ids, the close marker, then on to the budget: closes, but does not stop by itself
        "eos:T"    T ids, then a model EOS: ends inside thinking
        "empty"    no ids, finish stop
    answer_tokens: ids sampled in stage 2 before the EOS; None for all allowed (answer-limit contact).
    facts: overrides of EngineFacts fields (a wrong block size, another capture list, ...).
    crash, hang, nonsense, refuse: the place ("facts", "stage1", "stage2") where the process kills itself,
        sleeps for ever, prints no JSON, or raises. spawn: start a grandchild that sleeps.
    delay_s: sleep between progress reports.
    """

    outcomes: tuple[str, ...] = ("loop:7", "close:40", "drift", "eos:30")
    answer_tokens: int | None = 11
    facts: dict[str, Any] = field(default_factory=dict)
    runtime: dict[str, Any] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    crash: str | None = None
    hang: str | None = None
    nonsense: str | None = None
    refuse: str | None = None
    spawn: str | None = None  # file that gets the grandchild's process id
    delay_s: float = 0.0

    @classmethod
    def load(cls, path: Path) -> "Script":
        known = {item.name for item in fields(cls)}
        value = json.loads(path.read_text())
        if set(value) - known:
            raise ValueError(f"script fields {sorted(set(value) - known)} are unknown")
        return cls(**{k: tuple(v) if k in ("outcomes", "warnings") else v for k, v in value.items()})


class ScriptedEngine:
    """`Engine` over a script. Geometry follows the request's arguments as vLLM's would."""

    def __init__(self, request: EngineRequest, script: Script) -> None:
        self.request, self.script = request, script
        self.counts = {"preemptions": 0, "scheduled_tokens": 0, "prompt_tokens": 0, "generated_tokens": 0}
        self.stage = 0
        if script.spawn is not None:
            grandchild = os.fork()
            if grandchild == 0:
                time.sleep(600)
                os._exit(0)
            Path(script.spawn).write_text(str(grandchild))
        self._fault("facts")

    def facts(self) -> EngineFacts:
        args = self.request.engine_args
        block, max_len = 128, args["max_model_len"]
        blocks = args.get("num_gpu_blocks_override", 512)
        sizes, most = args.get("cudagraph_capture_sizes"), args.get("max_cudagraph_capture_size") or 0
        implied = [1 << power for power in range(most.bit_length())]  # what vLLM 0.24 makes of a maximum
        concurrency = blocks / -(-max_len // block)
        cuda = self.request.backend == "vllm-cuda"
        eager = args["enforce_eager"]
        values: dict[str, Any] = {
            "engine": "scripted",
            "engine_version": "1",
            "device": "cuda" if cuda else "cpu",
            "device_name": "scripted",
            "max_model_len_tokens": max_len,
            "max_num_seqs": args["max_num_seqs"],
            "max_num_batched_tokens": args["max_num_batched_tokens"],
            "block_size_tokens": block,
            "num_blocks": blocks,
            "null_blocks": 1,
            "mamba_groups": 0,
            "kv_cache_size_tokens": int(concurrency * max_len),
            "max_concurrency": repr(concurrency),
            "capture_requested": None if sizes is None else tuple(sizes),
            "capture_max_requested": args.get("max_cudagraph_capture_size"),
            "capture_resolved": () if eager else tuple(sizes or implied),
            "graph_mode": "NONE" if eager else "FULL_AND_PIECEWISE",
            "decode_graph_mode": "NONE" if eager else "FULL",
            "has_full_graphs": not eager,
            "enforce_eager": eager,
            "enable_prefix_caching": args["enable_prefix_caching"],
            "async_scheduling": args["async_scheduling"],
            "engine_seed": args["seed"],
            "dtype": args["dtype"],
            "requested_args": args,
            "resolved_args": args,
            "load_s": 0.0,
        }
        return EngineFacts(**values | self.script.facts)

    def runtime(self) -> RuntimeFacts:
        values: dict[str, Any] = {
            "python": "3", "platform": "scripted", "packages": {"scripted": "1"}, "pip_check": (),
            "engine_lock_sha256": None, "device_driver": None, "cuda": None,
            "environment": dict(self.request.environment),
        }  # fmt: skip
        return RuntimeFacts(**values | self.script.runtime)

    def generate(
        self, requests: Sequence[SampleRequest], on_progress: Callable[[Progress], None]
    ) -> list[Completion]:
        self.stage += 1
        self._fault(f"stage{self.stage}")
        started, done = time.monotonic(), []
        for request in requests:
            for index in range(request.n):
                ids, reason, stop = self._sample(request, index, len(done))
                if len(ids) > request.max_tokens:  # as any engine does
                    ids, reason, stop = ids[: request.max_tokens], "length", None
                done.append(Completion(request.request_id, index, tuple(ids), reason, stop))
                self.counts["prompt_tokens"] += len(request.prompt_token_ids)
                self.counts["generated_tokens"] += len(ids)
            time.sleep(self.script.delay_s)
            sampled = sum(len(one.token_ids) for one in done)
            on_progress(Progress(sampled, time.monotonic() - started, request.n, 0, 1, 0))
        return done

    def counters(self) -> dict[str, int]:
        scheduled = self.counts["prompt_tokens"] + self.counts["generated_tokens"]
        return self.counts | {"scheduled_tokens": scheduled, "recomputed_tokens": 0} | self.script.counters

    def warnings(self) -> list[str]:
        return list(self.script.warnings)

    def close(self) -> None:
        return

    def _sample(self, request: SampleRequest, index: int, number: int) -> tuple[list[int], str, int | None]:
        thinking, limit = self.request.thinking, request.max_tokens
        eos = thinking.model_eos_token_ids[0]
        fresh = _distinct(request.seed + index, request.prompt_token_ids, limit, thinking)
        if self.stage == 2:
            length = self.script.answer_tokens
            return (fresh, "length", None) if length is None else ([*fresh[:length], eos], "stop", eos)
        kind, _, text = self.script.outcomes[number % len(self.script.outcomes)].partition(":")
        length = int(text or 0)
        closed = [*fresh[:length], *thinking.close_marker_token_ids]
        cycle = fresh[length : 2 * length]
        outcomes: dict[str, tuple[list[int], str, int | None]] = {
            "loop": ([*fresh[:length], *(cycle * limit)][:limit], "length", None),
            "drift": (fresh, "length", None),
            "close": ([*closed, *fresh[length : length + 5], eos], "stop", eos),
            "open": ([*closed, *fresh[length:]][:limit], "length", None),
            "eos": ([*fresh[:length], eos], "stop", eos),
            "empty": ([], "stop", None),
        }
        return outcomes[kind]

    def _fault(self, place: str) -> None:
        if self.script.nonsense == place:
            os.write(int(sys.argv[-1]), b"no json at all\n")
        if self.script.refuse == place:
            raise RuntimeError(f"scripted refusal in {place}")
        if self.script.crash == place:
            sys.stderr.write(f"ScriptedError: torn down in {place}\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.script.hang == place:
            time.sleep(3600)


def _distinct(seed: int, prompt: Sequence[int], count: int, thinking: Any) -> list[int]:
    """`count` ids from 1,000 up that repeat nowhere and are neither marker nor EOS, from (seed, prompt)."""
    forbidden = {*thinking.close_token_ids, *thinking.model_eos_token_ids}
    digest = hashlib.sha256(f"{seed}:{','.join(map(str, prompt))}".encode()).digest()
    first = 1000 + int.from_bytes(digest[:4], "big") % 1_000_000
    ids = (first + step for step in range(count + len(forbidden)))
    return [token for token in ids if token not in forbidden][:count]


if __name__ == "__main__":
    script = Script.load(Path(sys.argv[1])) if len(sys.argv) == 4 else Script()
    sys.exit(serve(lambda request: ScriptedEngine(request, script), sys.argv[-2:]))
