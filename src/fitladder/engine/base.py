"""What may the house know of an engine? Requests in, completions and facts out, token ids only.

The gates see `EngineFacts` and nothing else of an engine. No text, no vllm, no torch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from fitladder.protocol.settings import Frozen

__all__ = ["Completion", "Engine", "EngineFacts", "Progress", "RuntimeFacts", "SampleRequest"]

Size = Annotated[int, Field(ge=0)]


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


@dataclass(frozen=True)
class SampleRequest:
    """One prompt to complete `n` times. vLLM gives sample i of a request the seed `seed + i`."""

    request_id: str
    prompt_token_ids: tuple[int, ...]
    n: int
    seed: int
    max_tokens: int


@dataclass(frozen=True)
class Completion:
    """One sampled continuation: the ids as the engine returned them, EOS included where it sampled one."""

    request_id: str
    index: int  # 0..n-1 within the request
    token_ids: tuple[int, ...]
    finish_reason: str | None  # stop, length, abort, repetition, ...
    stop_reason: int | str | None  # vLLM: the stop id that ended it


@dataclass(frozen=True)
class Progress:
    """A live line: counts since generation began."""

    sampled_tokens: int
    elapsed_s: float
    running_seqs: int
    waiting_seqs: int
    kv_used_blocks: int
    preemptions: int


class Engine(Protocol):
    """A built engine. `generate` returns completions in request order, then index order."""

    def facts(self) -> EngineFacts: ...

    def runtime(self) -> RuntimeFacts: ...

    def generate(
        self, requests: Sequence[SampleRequest], on_progress: Callable[[Progress], None]
    ) -> list[Completion]: ...

    def counters(self) -> dict[str, int]:
        """preemptions, scheduled_tokens, prompt_tokens, generated_tokens, recomputed_tokens so far."""
        ...

    def warnings(self) -> list[str]:
        """Late compilation and JIT lines seen while generating; they fell into generation time."""
        ...

    def close(self) -> None: ...
