"""What two-stage sampling needs of an engine: requests in, completions out, token ids only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from fitladder.records.engine_facts import EngineFacts, RuntimeFacts

__all__ = ["Completion", "Engine", "Progress", "SampleRequest"]


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

    def facts(self) -> EngineFacts:
        """What the built engine reports of its pool, widths and graphs."""
        ...

    def runtime(self) -> RuntimeFacts:
        """Python, packages, device and driver that it runs with."""
        ...

    def generate(
        self, requests: Sequence[SampleRequest], on_progress: Callable[[Progress], None]
    ) -> list[Completion]:
        """Sample every request to its end; `on_progress` is called from time to time."""
        ...

    def counters(self) -> dict[str, int]:
        """preemptions, scheduled_tokens, prompt_tokens, generated_tokens, recomputed_tokens so far."""
        ...

    def warnings(self) -> list[str]:
        """Late compilation and JIT lines seen while generating; they fell into generation time."""
        ...

    def close(self) -> None:
        """End the engine and free its device."""
        ...
