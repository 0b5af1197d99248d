"""`fitladder plan`: how many sequences fit at a context length, and the graphs that cover them.

Needs no GPU. Live figures, where given, decide; otherwise the pool is predicted from model and GPU.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fitladder.canonical import parse_model, read_json
from fitladder.capacity.engine_layout import CacheDtype
from fitladder.capacity.gpu_memory import MemoryPlan
from fitladder.capacity.gpus import find_gpu
from fitladder.capacity.kv_blocks import NULL_BLOCKS, check_concurrency, longest_sequence_tokens
from fitladder.capacity.kv_rule import KvRule
from fitladder.capacity.plan import EngineWish, check_width, predict_cache, predict_steps
from fitladder.capacity.widest_batch import Cache, plan_capacity
from fitladder.cli.model_layout import ModelCache, ModelOptions, model_cache
from fitladder.cli.options import DEFAULT_ENGINE_PYTHON, EnginePython, Json
from fitladder.cli.planned import PrintedPlan, print_plan
from fitladder.errors import InputRefused, UsageError
from fitladder.records.engine_facts import EngineFacts

__all__ = ["plan"]

MOST_SEQUENCES = 10_000  # every one is simulated


def plan(
    *,
    budget: Annotated[int, typer.Option(help="Thinking budget: most tokens sampled in stage 1.")],
    prompt_max: Annotated[int, typer.Option(help="Longest prompt in tokens.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="A folder with config.json of a modelled family (others: --exact, or refused), or a preset."
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
    tensor_parallel_size: Annotated[int, typer.Option(help="Ranks that share each layer.")] = 1,
    kv_cache_dtype: Annotated[CacheDtype, typer.Option(help="auto: what the checkpoint declares.")] = "auto",
    block_size: Annotated[int | None, typer.Option(help="Tokens a block, as vLLM is asked for.")] = None,
    enable_prefix_caching: Annotated[
        bool | None,
        typer.Option(
            "--enable-prefix-caching/--no-enable-prefix-caching", help="Default: what the release does."
        ),
    ] = None,
    vllm_version: Annotated[
        str | None, typer.Option(help="Whose rules: 0.24 (the GPU lock, default) or 0.32 (the CPU build).")
    ] = None,
    kv_rule: Annotated[KvRule, typer.Option(help="Which figures decide: tokens, blocks or both.")] = "both",
    exact: Annotated[
        bool, typer.Option("--exact", help="Ask vLLM in the engine environment: any model, about 25 s.")
    ] = False,
    engine_python: EnginePython = DEFAULT_ENGINE_PYTHON,
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
        ("--tensor-parallel-size", tensor_parallel_size),
    ):
        if value is not None and value < 1:
            raise UsageError(name, got=value, need="a positive number")
    if sequences is not None and sequences > MOST_SEQUENCES:
        raise UsageError("--sequences", got=sequences, need=f"at most {MOST_SEQUENCES}")
    if gpu is not None and device == "cpu":
        raise UsageError(
            "--gpu with --device cpu", need="--blocks or --kv-tokens: only a GPU's pool is predicted"
        )
    facts = _facts(preflight) if preflight is not None else None
    total = longest_sequence_tokens(prompt_max, budget, close, answer)
    if facts is not None:
        max_num_batched_tokens, device = facts.max_num_batched_tokens, facts.device
        vllm_version = vllm_version or facts.engine_version
        enable_prefix_caching = facts.enable_prefix_caching
    options = ModelOptions(
        max_model_len=max_model_len if facts is None else None,  # a live length needs no leave
        max_num_batched_tokens=max_num_batched_tokens,
        tensor_parallel_size=tensor_parallel_size,
        kv_cache_dtype=kv_cache_dtype,
        block_size=block_size,
        enable_prefix_caching=enable_prefix_caching,
        ssm_dtype=ssm_dtype,
        device=device,
        vllm_version=vllm_version,
        exact_python=engine_python if exact else None,
    )
    found = model_cache(model, options, total) if model is not None else None
    memory: MemoryPlan | None = None
    if facts is not None:
        cache = _live_cache(facts, found)
    elif found is not None:
        if gpu is not None and tensor_parallel_size > 1 and blocks is None and kv_tokens is None:
            raise UsageError(
                "--gpu with --tensor-parallel-size",
                need="--blocks or --kv-tokens: one GPU's pool is predicted",
            )
        wish = EngineWish(found.max_model_len_tokens, max_num_batched_tokens, gpu_memory_utilization, device)
        cache, memory = predict_cache(
            found.geometry() if gpu is not None else None,
            wish,
            total,
            gpu_bytes=find_gpu(gpu) if gpu is not None else None,
            blocks=blocks,
            kv_tokens=kv_tokens,
            layout=found.layout,
        )
    else:
        raise UsageError("nothing to plan", need="--model or --preflight")
    result = plan_capacity(cache, total, max_num_batched_tokens=max_num_batched_tokens, rule=kv_rule)
    plan = PrintedPlan(
        cache=cache,
        result=result,
        asked=check_width(cache, result, max_num_seqs, sequences) if max_num_seqs is not None else None,
        memory=memory,
        outlook=predict_steps(cache, result, prompt_max, sequences) if sequences else None,
        model=found,
    )
    print_plan(plan, as_json=as_json)


def _facts(path: Path) -> EngineFacts:
    """The engine of a preflight, or engine facts alone."""
    document = read_json(path)
    if isinstance(document, dict) and "engine" in document and isinstance(document["engine"], dict):
        document = document["engine"]
    return parse_model(EngineFacts, document, where=str(path))


def _live_cache(facts: EngineFacts, model: ModelCache | None) -> Cache:
    if facts.null_blocks != NULL_BLOCKS:
        raise InputRefused(
            "preflight: null_blocks", got=facts.null_blocks, need=f"{NULL_BLOCKS}, as in vLLM V1"
        )
    if facts.block_size_tokens is None:
        raise InputRefused("preflight: block_size_tokens", got="none", need="the live block size")
    layout = None if model is None or model.layout.grows_by_whole_sequence else model.layout
    if model is not None and model.layout.block_size_tokens != facts.block_size_tokens:
        raise InputRefused(
            "preflight and model disagree on the block size",
            got=f"{facts.block_size_tokens} live",
            need=f"{model.layout.block_size_tokens} by the config and vLLM {model.vllm}",
        )
    groups = facts.mamba_groups if layout is None else layout.state_blocks
    cache = Cache(facts.block_size_tokens, groups, facts.num_blocks, facts.max_model_len_tokens, layout)
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
    return cache
