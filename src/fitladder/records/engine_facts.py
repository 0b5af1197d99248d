"""Facts that a built engine reports of itself, and of the process and packages that it runs in.

The gates see `EngineFacts` and nothing else of an engine. No text, no vllm, no torch.
"""

from typing import Any, Literal

from fitladder.frozen import Frozen, Size

__all__ = [
    "EngineFacts",
    "RuntimeFacts",
]


class EngineFacts(Frozen):
    """What a live engine reported about itself after it was built and before a token was sampled."""

    engine: str
    engine_version: str
    device: Literal["cuda", "cpu"]
    device_name: str
    max_model_len_tokens: Size
    max_num_seqs: Size
    max_num_batched_tokens: Size
    block_size_tokens: Size | None  # None where the engine did not report it: the KV gate refuses
    num_blocks: Size  # as vLLM counts them
    null_blocks: Size  # of num_blocks, held back by vLLM (1 on V1)
    mamba_groups: Size  # blocks that each request holds besides its attention blocks
    kv_cache_size_tokens: Size
    max_concurrency: str  # decimal text, at max_model_len
    capture_requested: tuple[Size, ...] | None
    capture_max_requested: Size | None
    capture_resolved: tuple[Size, ...] | None
    graph_mode: str  # e.g. FULL_AND_PIECEWISE, NONE
    decode_graph_mode: str  # e.g. FULL, PIECEWISE, NONE
    has_full_graphs: bool
    enforce_eager: bool
    enable_prefix_caching: bool
    async_scheduling: bool
    engine_seed: Size
    dtype: str
    requested_args: dict[str, Any]
    resolved_args: dict[str, Any]
    load_s: float


class RuntimeFacts(Frozen):
    """The environment an engine ran in; may not drift within a rung."""

    python: str
    platform: str
    packages: dict[str, str]
    pip_check: tuple[str, ...]  # its complaints, empty when clean
    engine_lock_sha256: str | None
    device_driver: str | None
    cuda: str | None
    environment: dict[str, str]  # the registered variables, as the engine process saw them
