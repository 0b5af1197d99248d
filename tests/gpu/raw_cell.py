"""One cell of bare vLLM, run by our loop: raw_cell.py '{"model": ..., "prompts": ..., "seqs": ..., ...}'

The same JSON, engine arguments, prompts, seeds and lines as the bare one; counted, and begun by a line on
standard input. One process a cell.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.update(
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_USE_FLASHINFER_SAMPLER="0",
    VLLM_NO_USAGE_STATS="1",
    HF_HUB_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
)

from fitladder.engine.child.vllm_engine import VllmEngine
from fitladder.sampling.engine_protocol import SampleRequest

PARAMETERS = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "ignore_eos": True, "detokenize": False}
WARMUP_TOKENS = 64


def arguments(cell: dict[str, Any]) -> dict[str, Any]:
    sizes = cell.get("sizes")
    asked: dict[str, Any] = {
        "model": cell["model"],
        "load_format": "dummy",
        "dtype": "bfloat16",
        "max_model_len": 65_536,
        "gpu_memory_utilization": cell["utilization"],
        "kv_cache_memory_bytes": cell["kv_bytes"],
        "num_gpu_blocks_override": cell["blocks"],
        "max_num_seqs": cell["seqs"],
        "max_num_batched_tokens": 32_768,
        "language_model_only": True,
        "enable_prefix_caching": False,
        "mamba_cache_mode": "none",
        "generation_config": "vllm",
        "seed": 0,
        "async_scheduling": False,
        "disable_log_stats": False,
        "gdn_prefill_backend": "triton",
        "skip_tokenizer_init": True,
        "max_cudagraph_capture_size": sizes[-1] if sizes else cell["seqs"],
    }
    return asked | ({"cudagraph_capture_sizes": sizes} if sizes else {})


def main(cell: dict[str, Any]) -> None:
    prompts = json.loads(Path(cell["prompts"]).read_text())
    engine = VllmEngine(arguments(cell), parameters=PARAMETERS)
    facts = engine.facts()
    print("GEOMETRY", facts.model_dump_json(include=SHOWN), flush=True)
    sys.stdin.readline()
    for rep in range(cell.get("reps", 1) + 1):  # rep 0 is a warm-up
        length = WARMUP_TOKENS if rep == 0 else cell["len"]
        requests = [
            SampleRequest(f"s{i:04d}", tuple(prompts[i % len(prompts)]), 1, 2701 + i, length)
            for i in range(cell["n"])
        ]
        before, began, heard = engine.counters(), time.perf_counter(), len(engine.warnings())
        completions = engine.generate(requests, lambda _: None)
        seconds = time.perf_counter() - began
        tokens, after = sum(len(one.token_ids) for one in completions), engine.counters()
        counted = {name: after[name] - before[name] for name in ("preemptions", "recomputed_tokens", "steps")}
        figures = {"rep": rep, "tokens": tokens, "s": round(seconds, 2)}
        figures |= {"tokens_per_s": round(tokens / seconds, 1), **counted}
        print("RUN", json.dumps(figures | {"late": engine.warnings()[heard:]}), flush=True)
    engine.close()


SHOWN = {
    "block_size_tokens", "num_blocks", "kv_cache_size_tokens", "capture_resolved", "graph_mode",
    "decode_graph_mode", "load_s",
}  # fmt: skip

if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
