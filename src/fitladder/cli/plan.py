"""`fitladder plan`: how many sequences fit at this context length, and which graphs cover them?

Needs no GPU. Live figures, where given, decide; otherwise the pool is predicted from model and GPU.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fitladder.canonical import parse_model, read_json
from fitladder.capacity.block_geometry import Geometry, parse_geometry
from fitladder.capacity.gpu_memory import MemoryPlan
from fitladder.capacity.gpus import find_gpu
from fitladder.capacity.kv_blocks import NULL_BLOCKS, check_concurrency, longest_sequence_tokens
from fitladder.capacity.plan import EngineWish, check_width, predict_cache, predict_steps
from fitladder.capacity.presets import find_preset
from fitladder.capacity.widest_batch import Cache, plan_capacity
from fitladder.cli.options import Json
from fitladder.cli.planned import print_plan
from fitladder.errors import InputRefused, UsageError
from fitladder.records.engine_facts import EngineFacts

__all__ = ["plan"]

DEFAULT_MAX_MODEL_LEN = 65_536
MOST_SEQUENCES = 10_000  # every one is simulated


def plan(
    *,
    budget: Annotated[int, typer.Option(help="Thinking budget: most tokens sampled in stage 1.")],
    prompt_max: Annotated[int, typer.Option(help="Longest prompt in tokens.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="A folder with config.json of a modelled family (others are refused by name), or a preset."
        ),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(help="h200, h100, a100-80, rtx6000ada, l40s, rtx4090, ...")
    ] = None,
    answer: Annotated[int, typer.Option(help="Most tokens of the answer.")] = 512,
    close: Annotated[int, typer.Option(help="Tokens of the close sequence.")] = 2,
    max_model_len: Annotated[
        int | None, typer.Option(help="65536, or the model's limit if that is less.")
    ] = None,
    gpu_memory_utilization: Annotated[float, typer.Option(help="Share of the GPU that vLLM may use.")] = 0.9,
    max_num_batched_tokens: Annotated[int, typer.Option(help="Tokens an engine step may schedule.")] = 32_768,
    blocks: Annotated[
        int | None, typer.Option(help="Live number of blocks, the null block included.")
    ] = None,
    kv_tokens: Annotated[int | None, typer.Option(help="Live kv_cache_size_tokens.")] = None,
    preflight: Annotated[Path | None, typer.Option(help="A preflight: its engine's figures decide.")] = None,
    max_num_seqs: Annotated[
        int | None, typer.Option(help="A width to test; exit 5 where it does not fit.")
    ] = None,
    sequences: Annotated[int | None, typer.Option(help="Sequences in all: compares admissions, too.")] = None,
    ssm_dtype: Annotated[
        str | None, typer.Option(help="State dtype of a hybrid; default: the config's.")
    ] = None,
    device: Annotated[Literal["cuda", "cpu"], typer.Option(help="Which vLLM build.")] = "cuda",
    as_json: Json = False,
) -> None:
    """How many sequences fit at this context length? Counts blocks, not only attention tokens.

    The implicit list is what vLLM makes of a largest capture size that is the width, and no list.

    fitladder plan --model qwen3.5-4b --gpu h200 --budget 49152 --prompt-max 1060
    """
    for name, value in (
        ("--max-num-seqs", max_num_seqs),
        ("--sequences", sequences),
        ("--max-model-len", max_model_len),
        ("--max-num-batched-tokens", max_num_batched_tokens),
    ):
        if value is not None and value < 1:
            raise UsageError(name, got=value, need="a positive number")
    if sequences is not None and sequences > MOST_SEQUENCES:
        raise UsageError("--sequences", got=sequences, need=f"at most {MOST_SEQUENCES}")
    if gpu is not None and device == "cpu":
        raise UsageError(
            "--gpu with --device cpu", need="--blocks or --kv-tokens: only a GPU's pool is predicted"
        )
    geometry = _geometry(model, ssm_dtype) if model is not None else None
    facts = _facts(preflight) if preflight is not None else None
    total = longest_sequence_tokens(prompt_max, budget, close, answer)
    memory: MemoryPlan | None = None
    if facts is not None:
        cache = _live_cache(facts, geometry)
        max_num_batched_tokens = facts.max_num_batched_tokens
    elif geometry is not None:
        wish = EngineWish(
            _max_model_len(geometry, max_model_len),
            max_num_batched_tokens,
            gpu_memory_utilization,
            device,
        )
        gpu_bytes = find_gpu(gpu) if gpu is not None else None
        cache, memory = predict_cache(
            geometry, wish, total, gpu_bytes=gpu_bytes, blocks=blocks, kv_tokens=kv_tokens
        )
    else:
        raise UsageError("nothing to plan", need="--model or --preflight")
    result = plan_capacity(cache, total, max_num_batched_tokens=max_num_batched_tokens)
    print_plan(
        cache,
        result,
        check_width(cache, result, max_num_seqs, sequences) if max_num_seqs is not None else None,
        memory,
        predict_steps(cache, result, prompt_max, sequences) if sequences else None,
        as_json=as_json,
    )


def _geometry(model: str, ssm_dtype: str | None) -> Geometry:
    path = Path(model)
    if path.is_dir():
        path = path / "config.json"
    if not path.is_file() and path.suffix != ".json":
        return parse_geometry(find_preset(model), where=model, ssm_dtype=ssm_dtype)
    config = read_json(path)
    if not isinstance(config, dict):
        raise InputRefused(f"{path}: config", got=type(config).__name__, need="an object")
    return parse_geometry(config, where=str(path), ssm_dtype=ssm_dtype)


def _facts(path: Path) -> EngineFacts:
    """The engine of a preflight, or engine facts alone."""
    document = read_json(path)
    if isinstance(document, dict) and "engine" in document and isinstance(document["engine"], dict):
        document = document["engine"]
    return parse_model(EngineFacts, document, where=str(path))


def _live_cache(facts: EngineFacts, geometry: Geometry | None) -> Cache:
    if facts.null_blocks != NULL_BLOCKS:
        raise InputRefused(
            "preflight: null_blocks", got=facts.null_blocks, need=f"{NULL_BLOCKS}, as in vLLM V1"
        )
    if facts.block_size_tokens is None:
        raise InputRefused("preflight: block_size_tokens", got="none", need="the live block size")
    cache = Cache(facts.block_size_tokens, facts.mamba_groups, facts.num_blocks, facts.max_model_len_tokens)
    try:
        concurrency = float(facts.max_concurrency)
    except ValueError as error:
        raise InputRefused(
            "preflight: max_concurrency", got=repr(facts.max_concurrency), need="a decimal"
        ) from error
    check_concurrency(facts.kv_cache_size_tokens, concurrency, facts.max_model_len_tokens)
    if cache.kv_cache_size_tokens != facts.kv_cache_size_tokens:
        raise InputRefused(
            "preflight: kv_cache_size_tokens",
            got=facts.kv_cache_size_tokens,
            need=f"{cache.kv_cache_size_tokens}, as {facts.num_blocks} blocks give",
        )
    if geometry is not None and geometry.block_size_tokens(facts.device) != facts.block_size_tokens:
        raise InputRefused(
            "preflight and model disagree on the block size",
            got=f"{facts.block_size_tokens} live",
            need=f"{geometry.block_size_tokens(facts.device)} by the config",
        )
    return cache


def _max_model_len(geometry: Geometry, asked: int | None) -> int:
    if asked is not None and asked > geometry.max_position_tokens:
        raise InputRefused(
            "--max-model-len", got=asked, need=f"at most the model's {geometry.max_position_tokens}"
        )
    return asked or min(DEFAULT_MAX_MODEL_LEN, geometry.max_position_tokens)
