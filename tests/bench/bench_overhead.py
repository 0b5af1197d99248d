"""What does our runner cost over a bare `LLM.generate` of the same requests, side by side in one process?

    PYTHON_OF_THE_ENGINE tests/bench/bench_overhead.py [--device cpu|cuda] [--reps 7] [--out FILE]

One engine; per repeat both ways in alternating order, the same prompts, seeds and lengths, our step counter
taken off for the bare one. Prints and writes wall and processor seconds of each repeat, and the median ratio
of both with a bootstrap interval. On a shared machine the wall clock says little; the processor time does.
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.update(
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_USE_FLASHINFER_SAMPLER="0",
    VLLM_NO_USAGE_STATS="1",
    HF_HUB_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
)
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import vllm
from vllm.inputs import tokens_input
from vllm.sampling_params import RequestOutputKind

from fitladder.engine.child.vllm_engine import VllmEngine
from fitladder.engine.convert.geometry_model import write_geometry_model
from fitladder.sampling.engine_protocol import SampleRequest

COMMON = {
    "async_scheduling": False,
    "disable_log_stats": False,
    "enable_prefix_caching": False,
    "generation_config": "vllm",
    "load_format": "dummy",
    "seed": 0,
    "skip_tokenizer_init": True,
}
ENGINES = {
    "cpu": {
        "dtype": "float32",
        "enable_chunked_prefill": False,
        "enforce_eager": True,
        "kv_cache_memory_bytes": 1 << 30,
        "max_model_len": 2048,
        "max_num_batched_tokens": 2048,
    },
    "cuda": {
        "dtype": "bfloat16",
        "gpu_memory_utilization": 0.9,
        "max_model_len": 65_536,
        "max_num_batched_tokens": 32_768,
    },
}
HYBRID = {"gdn_prefill_backend": "triton", "language_model_only": True, "mamba_cache_mode": "none"}
SAMPLING = {
    "temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.0, "ignore_eos": True, "detokenize": False,
}  # fmt: skip


def words() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=sorted(ENGINES), default="cpu")
    parser.add_argument("--preset", default=None, help="default: smollm2-135m, on CUDA qwen3.5-4b")
    parser.add_argument("--width", type=int, default=None)
    parser.add_argument("--requests", type=int, default=None, help="default: twice the width")
    parser.add_argument("--prompt-tokens", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=None)
    parser.add_argument("--reps", type=int, default=7)
    parser.add_argument("--out", type=Path, default=None)
    return parser.parse_args()


def main() -> None:
    asked = words()
    cuda = asked.device == "cuda"
    preset = asked.preset or ("qwen3.5-4b" if cuda else "smollm2-135m")
    width = asked.width or (19 if cuda else 6)
    count, tokens = asked.requests or 2 * width, asked.tokens or (512 if cuda else 48)
    arguments = COMMON | ENGINES[asked.device] | {"max_num_seqs": width}
    if cuda:
        sizes = [size for size in (1, 2, 4, 8, 16, 32, 64) if size < width] + [width]
        arguments |= {"cudagraph_capture_sizes": sizes, "max_cudagraph_capture_size": width}
    if preset.startswith("qwen3.5"):
        arguments |= HYBRID
    draw = random.Random(20)
    requests = [
        SampleRequest(
            request_id=str(number),
            prompt_token_ids=tuple(draw.randrange(1000, 40_000) for _ in range(asked.prompt_tokens)),
            n=1,
            seed=2701 + number,
            max_tokens=tokens,
        )
        for number in range(count)
    ]
    with tempfile.TemporaryDirectory() as folder:
        arguments["model"] = str(write_geometry_model(preset, Path(folder)))
        engine = VllmEngine(arguments, parameters=SAMPLING)
    facts = engine.facts()
    print(
        f"built in {facts.load_s:.1f} s: {facts.num_blocks} blocks of {facts.block_size_tokens}", flush=True
    )
    wall: dict[str, list[float]] = {"ours": [], "bare": []}
    processor: dict[str, list[float]] = {"ours": [], "bare": []}
    ids: dict[str, list[tuple[int, ...]]] = {}
    for repeat in range(asked.reps + 1):  # the first warms up both
        order = ("ours", "bare") if repeat % 2 else ("bare", "ours")
        for way in order:
            began = time.process_time()
            seconds, ids[way] = ours(engine, requests) if way == "ours" else bare(engine, requests)
            used = time.process_time() - began
            if repeat:
                wall[way].append(seconds)
                processor[way].append(used)
            print(f"repeat {repeat} {way}: {seconds:.3f} s, processor {used:.3f} s", flush=True)
    result = {
        "device": facts.device_name,
        "vllm": facts.engine_version,
        "preset": preset,
        "width": width,
        "requests": count,
        "sampled_tokens": count * tokens,
        "wall_s": wall,
        "processor_s": processor,
        "equal_ids": ids["ours"] == ids["bare"],
        "counters": engine.counters(),
        "warnings": engine.warnings(),
        "wall": ratio(wall["ours"], wall["bare"]),
        "processor": ratio(processor["ours"], processor["bare"]),
    }
    print(json.dumps(result, indent=1))
    if asked.out is not None:
        asked.out.write_text(json.dumps(result, indent=1) + "\n")
    engine.close()


def ours(engine: VllmEngine, requests: list[SampleRequest]) -> tuple[float, list[tuple[int, ...]]]:
    started = time.perf_counter()
    done = engine.generate(requests, lambda progress: None)
    return time.perf_counter() - started, [one.token_ids for one in done]


def bare(engine: VllmEngine, requests: list[SampleRequest]) -> tuple[float, list[tuple[int, ...]]]:
    counted = engine._scheduler.__dict__.pop("schedule")  # our counter, off for this run
    started = time.perf_counter()
    outputs = engine.llm.generate(
        [tokens_input(list(request.prompt_token_ids)) for request in requests],
        [
            vllm.SamplingParams(
                **SAMPLING,
                seed=request.seed,
                max_tokens=request.max_tokens,
                output_kind=RequestOutputKind.FINAL_ONLY,
            )
            for request in requests
        ],
        use_tqdm=False,
    )
    seconds = time.perf_counter() - started
    engine._scheduler.schedule = counted
    return seconds, [tuple(one.outputs[0].token_ids) for one in outputs]


def ratio(ours_s: list[float], bare_s: list[float]) -> dict[str, object]:
    """Median of ours over bare, repeat by repeat, with a 95 % bootstrap interval (seeded)."""
    ratios = [a / b for a, b in zip(ours_s, bare_s, strict=True)]
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return {
        "ratio_of_repeats": ratios,
        "median_ratio": statistics.median(ratios),
        "interval_95": [medians[50], medians[1949]],
        "ratio_of_sums": sum(ours_s) / sum(bare_s),
    }


if __name__ == "__main__":
    sys.exit(main())
