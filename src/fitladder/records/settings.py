"""The leaf settings of a registered experiment, each frozen and checked by itself.

Model, engine, thinking, sampling, rungs, rules: unknown fields are refused, units stand in the names.
"""

from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    model_validator,
)

from fitladder.canonical import Rate
from fitladder.frozen import Count, Frozen, Sha256, TokenId

__all__ = [
    "Artifacts",
    "Engine",
    "LoopRule",
    "Model",
    "Rung",
    "Sampling",
    "Semantics",
    "Thinking",
    "Thresholds",
]


def _open_rate(rate: Rate) -> Rate:
    if not 0 < rate.value < 1:
        raise ValueError(f"got {rate}, need a threshold strictly between 0 and 1")
    return rate


OpenRate = Annotated[
    Rate,
    BeforeValidator(lambda value: value if isinstance(value, Rate) else Rate.parse(value)),
    AfterValidator(_open_rate),
    PlainSerializer(str, return_type=str),
]


class Model(Frozen):
    """Which weights and tokenizer. A hub model is named by commit, a local folder by its tree digest."""

    name: str = Field(min_length=1)
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None
    folder_sha256: Sha256 | None
    tokenizer_sha256: Sha256 | None
    dtype: Literal["bfloat16", "float16", "float32"]

    @model_validator(mode="after")
    def _identified(self) -> Self:
        if (self.revision is None) == (self.folder_sha256 is None):
            raise ValueError(
                "model: need exactly one of revision (hub commit) and folder_sha256 (local folder)"
            )
        return self


class Engine(Frozen):
    """The engine arguments that are the same on every rung. `args` are passed to vLLM as they stand."""

    backend: Literal["vllm-cuda", "vllm-cpu"]
    vllm_version: str | None  # None only where history did not record it
    max_model_len_tokens: Count
    max_num_batched_tokens: Count
    tensor_parallel_size: Count
    engine_seed: Annotated[int, Field(ge=0)]
    enforce_eager: bool
    enable_prefix_caching: Literal[False]
    async_scheduling: Literal[False]
    gpu_memory_utilization: OpenRate | None
    kv_cache_memory_bytes: Count | None
    num_gpu_blocks_override: Count | None
    capture: Literal["exact", "implicit", "none"]
    # live lists may be unordered or repeat a size; left out where false, so that older bindings stay
    capture_normalised: bool = Field(default=False, exclude_if=lambda value: value is False)
    admission: Literal["worst_case", "spaced"]
    args: dict[str, str | int | bool]
    environment: dict[str, str]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.capture == "none") != self.enforce_eager:
            raise ValueError(
                f"engine.capture: got {self.capture!r} with enforce_eager {self.enforce_eager}; "
                "an eager engine captures no graph and only it registers capture: none"
            )
        if self.capture_normalised and self.capture != "exact":
            raise ValueError(
                f"engine.capture_normalised: got true with capture {self.capture!r}; only exact lists compare"
            )
        named = sorted(
            set(self.args) & (set(Engine.model_fields) | {"model", "seed", "max_num_seqs", "dtype"})
        )
        if named:
            raise ValueError(f"engine.args: {named[0]!r} has a field of its own; register it there")
        for name in self.environment:
            if name.startswith(("PYTHON", "LD_")):
                raise ValueError(
                    f"engine.environment: {name} would exchange code; only settings are registered"
                )
        if self.environment.get("VLLM_ENABLE_V1_MULTIPROCESSING", "0") != "0":
            raise ValueError(
                "engine.environment: VLLM_ENABLE_V1_MULTIPROCESSING must be 0: in-process engine"
            )
        return self


class Thinking(Frozen):
    """How thinking opens, closes and ends, as text for the prompt and as token ids for everything else.

    A natural close is the whole `close_marker_token_ids` in the sampled ids, never its first id alone.
    A forced close injects `close_token_ids`. `model_eos_token_ids` stop a sample; the tokenizer's own do not.
    """

    open_text: str
    close_text: str = Field(min_length=1)
    close_marker_token_ids: tuple[TokenId, ...] = Field(min_length=1)
    close_token_ids: tuple[TokenId, ...] = Field(min_length=1)
    model_eos_token_ids: tuple[TokenId, ...] = Field(min_length=1)
    eos_inside_thinking: Literal["forced_close", "no_answer"]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        marker, close = self.close_marker_token_ids, self.close_token_ids
        if close[: len(marker)] != marker:
            raise ValueError(
                f"thinking.close_token_ids: got {list(close)}, need it to begin with {list(marker)}"
            )
        if len(set(self.model_eos_token_ids)) != len(self.model_eos_token_ids):
            raise ValueError("thinking.model_eos_token_ids: an id stands twice")
        if set(self.model_eos_token_ids) & set(close):
            raise ValueError("thinking.close_token_ids: holds a model EOS id")
        return self


class Sampling(Frozen):
    """Every registered sampling value; penalties are off and stated so to the engine."""

    temperature: Annotated[float, Field(gt=0, le=5, allow_inf_nan=False)]
    top_p: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
    top_k: Count
    answer_max_tokens: Count
    run_seed: Annotated[int, Field(ge=0, lt=2**63)]


class Rung(Frozen):
    """One thinking budget with the width and the graphs that it is run at."""

    thinking_budget_tokens: Count
    max_num_seqs: Count
    capture_sizes: tuple[Count, ...] | None  # None: implicit, or no graphs at all
    deadline_s: Count  # watchdog on generation


class LoopRule(Frozen):
    """Periodic loop: the last `tail_tokens` thinking ids match themselves shifted by some period."""

    tail_tokens: Annotated[int, Field(ge=2)]
    max_period_tokens: Count
    min_match_rate: OpenRate
    min_budget_tokens: Count  # below it no loop is ever claimed

    @model_validator(mode="after")
    def _searchable(self) -> Self:
        if self.max_period_tokens * 2 > self.tail_tokens:
            raise ValueError(
                f"loop_rule.max_period_tokens: got {self.max_period_tokens}, "
                f"need at most half of the {self.tail_tokens}-token tail"
            )
        return self


class Thresholds(Frozen):
    """Adequate iff unresolved and answer-limit rates are below, and the loop rate at most, these."""

    unresolved_rate_below: OpenRate
    answer_limit_rate_below: OpenRate
    loop_rate_at_most: OpenRate

    def are_kept(self, *, unresolved: int, answer_limit: int, loops: int, samples: int) -> bool:
        """The registered verdict over counts of samples, by integers; no sample keeps nothing."""
        return (
            self.unresolved_rate_below.share_is_below(unresolved, samples)
            and self.answer_limit_rate_below.share_is_below(answer_limit, samples)
            and self.loop_rate_at_most.share_is_at_most(loops, samples)
        )


class Semantics(Frozen):
    """The three semantic gates, applied only to a selected matrix."""

    min_parse_rate: OpenRate
    min_macro_reuse_tasks: Count
    designed_reuse_oracle_not_below_base: Literal[True]


class Artifacts(Frozen):
    """Where bundles go. `root` may be absent only if the environment variable must name it."""

    root: str | None
    environment_override: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
    forbidden_roots: tuple[str, ...]

    @model_validator(mode="after")
    def _absolute(self) -> Self:
        for name, value in [
            ("root", self.root),
            *(("forbidden_roots", path) for path in self.forbidden_roots),
        ]:
            if value is not None and (not value.startswith("/") or value.rstrip("/") == "" or ".." in value):
                raise ValueError(f"artifacts.{name}: got {value!r}, need an absolute path without '..'")
        return self
