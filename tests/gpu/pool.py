"""KV pools as vLLM finds them, without weights and without an override.

    python3 tests/gpu/pool.py OUT.json MODEL[,ARG=VALUE...] ...

MODEL is a preset of `fitladder plan` or a folder with a config.json; ARG an argument of vLLM's `LLM`, its
VALUE as JSON or text. Each model gets an engine process of its own with the engine arguments of the
49,152-token rung and LIMIT_S seconds; OUT.json is rewritten after each, with the facts of the engine and the
bytes that vLLM counted, or with the end of the log of one that failed. The device must be free: vLLM profiles
its memory.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LIMIT_S = 240
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}
HYBRID = {"gdn_prefill_backend": "triton", "language_model_only": True, "mamba_cache_mode": "none"}
MEMORY = (
    "requested_memory",
    "peak_activation_memory",
    "non_torch_memory",
    "cudagraph_memory_estimate",
    "available_kv_cache_memory_bytes",
)
CAPTURE = [1, 2, 4, 8, 16, 19]


def model_folder(model: str) -> Path:
    """A weightless model folder in a scratch place, from a folder's config.json or from a preset."""
    from fitladder.engine.convert.geometry_model import write_geometry_model

    scratch = Path(tempfile.mkdtemp(prefix="pool-"))
    if (Path(model) / "config.json").is_file():
        shutil.copytree(model, scratch / "model")
        return scratch / "model"
    return write_geometry_model(model, scratch)


def longest_context_tokens(folder: Path) -> int:
    """The registered 65,536 tokens, or what the model has positions for where that is less."""
    config = json.loads((folder / "config.json").read_text())
    text = config.get("text_config", config)
    return int(min(65_536, text.get("max_position_embeddings", 65_536)))


def measure(model: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Build one engine in this process and read its facts and memory, all in bytes."""
    import torch
    import vllm

    from fitladder.engine.child.facts import engine_facts
    from fitladder.errors import FitladderError

    folder = model_folder(model)
    arguments: dict[str, Any] = {
        "async_scheduling": False,
        "cudagraph_capture_sizes": CAPTURE,
        "disable_log_stats": False,
        "dtype": "bfloat16",
        "enable_prefix_caching": False,
        "generation_config": "vllm",
        "gpu_memory_utilization": 0.9,
        "load_format": "dummy",
        "max_cudagraph_capture_size": CAPTURE[-1],
        "max_model_len": longest_context_tokens(folder),
        "max_num_batched_tokens": 32_768,
        "max_num_seqs": 19,
        "model": str(folder),
        "seed": 0,
        "skip_tokenizer_init": True,
    }
    arguments |= HYBRID if "qwen3.5" in model else {}
    started = time.perf_counter()
    asked = arguments | changes
    llm = vllm.LLM(**asked)
    worker = llm.llm_engine.model_executor.driver_worker.worker
    memory = {name: getattr(worker, name, None) for name in MEMORY}
    memory["model_memory_usage"] = getattr(worker.model_runner, "model_memory_usage", None)
    memory["total_memory"] = getattr(getattr(worker, "init_snapshot", None), "total_memory", None)
    groups = [
        {"layers": len(group.layer_names), "spec": repr(group.kv_cache_spec)}
        for group in llm.llm_engine.engine_core.engine_core.scheduler.kv_cache_config.kv_cache_groups
    ]
    cache = llm.llm_engine.vllm_config.cache_config
    device = torch.cuda.get_device_name()
    try:
        known = engine_facts(
            llm, version=vllm.__version__, device_name=device, requested_args=asked, load_s=0.0
        )
        facts: dict[str, Any] | str = known.model_dump(mode="json")
    except FitladderError as refused:  # groups that no gate understands
        facts = str(refused)
    return {
        "num_blocks": cache.num_gpu_blocks,
        "block_size_tokens": cache.block_size,
        "facts": facts,
        "engine": f"vllm {vllm.__version__}, torch {torch.__version__}, {device}",
        "max_model_len_tokens": asked["max_model_len"],
        "memory_bytes": memory,
        "kv_cache_groups": groups,
        "build_s": round(time.perf_counter() - started, 1),
    }


def parse_cell(text: str) -> tuple[str, dict[str, Any]]:
    """`MODEL,a=1,b=text` as (model, {a: 1, b: "text"})."""
    model, *pairs = text.split(",")
    changes: dict[str, Any] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            changes[name] = json.loads(value)
        except ValueError:
            changes[name] = value
    return model, changes


def run_cell(cell: str) -> dict[str, Any]:
    """One cell in a child process, within LIMIT_S."""
    model, changes = parse_cell(cell)
    name = Path(model).name
    with tempfile.TemporaryDirectory() as scratch:
        out, log = Path(scratch) / "out.json", Path(scratch) / "log"
        with log.open("w") as stream:
            try:
                code: int | str = subprocess.run(
                    [sys.executable, __file__, "--cell", cell, str(out)],
                    env=os.environ | ENVIRONMENT,
                    stdout=stream,
                    stderr=stream,
                    timeout=LIMIT_S,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                code = f"stopped after {LIMIT_S} s"
        head = {"model": name, "changes": changes}
        if out.is_file():
            return head | json.loads(out.read_text())
        return head | {"failed": code, "log": log.read_text(errors="replace").splitlines()[-25:]}


def main(words: list[str]) -> int:
    """Command line; 0 where every engine was built."""
    if words[0] == "--cell":
        model, changes = parse_cell(words[1])
        Path(words[2]).write_text(json.dumps(measure(model, changes)))
        return 0
    path, results = Path(words[0]), []
    for cell in words[1:]:
        results.append(run_cell(cell))
        path.write_text(json.dumps(results, indent=1) + "\n")
        last = results[-1]
        print(cell, last.get("failed", (last.get("num_blocks"), last.get("block_size_tokens"))), flush=True)
    return int(any("failed" in result for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
