"""The pool of one model as vLLM finds it, without weights and without an override: pool.py PRESET OUT.json

The registered engine arguments of the 49,152-token rung; what memory went where, in bytes, beside the facts.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.update(
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_USE_FLASHINFER_SAMPLER="0",
    VLLM_NO_USAGE_STATS="1",
    HF_HUB_OFFLINE="1",
    VLLM_LOGGING_LEVEL="DEBUG",
)

from fitladder.capacity.presets import find_preset
from fitladder.engine.child.vllm_engine import VllmEngine
from fitladder.engine.convert.geometry_model import write_geometry_model

HYBRID = {"gdn_prefill_backend": "triton", "language_model_only": True, "mamba_cache_mode": "none"}
MEMORY = (
    "requested_memory",
    "peak_activation_memory",
    "non_torch_memory",
    "cudagraph_memory_estimate",
    "available_kv_cache_memory_bytes",
)


def main(preset: str, path: Path) -> None:
    arguments: dict[str, Any] = {
        "async_scheduling": False,
        "cudagraph_capture_sizes": [1, 2, 4, 8, 16, 19],
        "disable_log_stats": False,
        "dtype": "bfloat16",
        "enable_prefix_caching": False,
        "generation_config": "vllm",
        "gpu_memory_utilization": 0.9,
        "load_format": "dummy",
        "max_cudagraph_capture_size": 19,
        "max_model_len": min(65_536, find_preset(preset)["max_position_embeddings"]),
        "max_num_batched_tokens": 32_768,
        "max_num_seqs": 19,
        "model": str(write_geometry_model(preset, Path(tempfile.mkdtemp(prefix="pool-")))),
        "seed": 0,
        "skip_tokenizer_init": True,
    }
    engine = VllmEngine(arguments | (HYBRID if preset.startswith("qwen3.5") else {}), parameters={})
    worker = engine.llm.llm_engine.model_executor.driver_worker.worker
    memory = {name: getattr(worker, name, None) for name in MEMORY}
    memory["model_memory_usage"] = getattr(worker.model_runner, "model_memory_usage", None)
    memory["total_memory"] = getattr(getattr(worker, "init_snapshot", None), "total_memory", None)
    document = {
        "preset": preset,
        "facts": engine.facts().model_dump(mode="json"),
        "runtime": engine.runtime().model_dump(mode="json"),
        "memory_bytes": memory,
    }
    path.write_text(json.dumps(document, indent=1) + "\n")
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
