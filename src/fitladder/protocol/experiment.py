"""What is a registered experiment, and is every value in it one that may be registered?

Frozen models of one section of params.yaml. Unknown fields are refused, each cross-field rule names its
field. Nothing here reads a file, knows a path on this machine, or knows what happened later.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from fitladder.canonical import Rate
from fitladder.errors import FitladderError
from fitladder.protocol.capture import check_capture_list

__all__ = [
    "ARMS",
    "ARM_OF_PHASE",
    "PHASES",
    "Artifacts",
    "Engine",
    "Experiment",
    "InputName",
    "LoopRule",
    "Model",
    "Phase",
    "Rung",
    "Sampling",
    "Semantics",
    "Thinking",
    "Thresholds",
]

Phase = Literal["probe", "base", "designed"]
Arm = Literal["base", "designed_ceiling"]
PHASES: tuple[Phase, ...] = ("probe", "base", "designed")  # the order of the ladder within a rung
ARMS: tuple[Arm, ...] = ("base", "designed_ceiling")
ARM_OF_PHASE: dict[Phase, Arm] = {"probe": "base", "base": "base", "designed": "designed_ceiling"}
InputName = Literal[
    "tasks",
    "hidden",
    "libraries",
    "demonstrations",
    "prompt_manifest",
    "records_base",
    "records_designed_ceiling",
]


def _open_rate(rate: Rate) -> Rate:
    if not 0 < rate.value < 1:
        raise ValueError(f"got {rate}, need a threshold strictly between 0 and 1")
    return rate


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]{2,79}$")]
Count = Annotated[int, Field(gt=0)]
TokenId = Annotated[int, Field(ge=0)]
OpenRate = Annotated[
    Rate,
    BeforeValidator(lambda value: value if isinstance(value, Rate) else Rate.parse(value)),
    AfterValidator(_open_rate),
    PlainSerializer(str, return_type=str),
]


class Frozen(BaseModel):
    """A registered value: immutable, strict types, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)


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
        named = sorted(
            set(self.args) & (set(Engine.model_fields) | {"model", "seed", "max_num_seqs", "dtype"})
        )
        if named:
            raise ValueError(f"engine.args: {named[0]!r} has a field of its own; register it there")
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


class Experiment(Frozen):
    """One frozen protocol with its own artifact root; never pooled with another.

    `state` and `artifacts` are not part of the binding: what happened later, and where bytes lie, are no
    protocol.
    """

    experiment_id: Identifier
    state: Literal["open", "stopped", "terminal"]
    predecessor: Identifier | None
    review: Literal["independent", "self"]
    model: Model
    engine: Engine
    thinking: Thinking
    sampling: Sampling
    records_per_arm: Count
    longest_prompt_tokens: Count
    probe_k: Count
    matrix_k: Count
    rungs: tuple[Rung, ...] = Field(min_length=1)
    kv_rule: Literal["token", "both"]
    loop_rule: LoopRule
    thresholds: Thresholds
    semantics: Semantics
    data: dict[InputName, Sha256]
    artifacts: Artifacts

    @model_validator(mode="after")
    def _cross_checks(self) -> Self:
        if self.probe_k == self.matrix_k:
            raise ValueError(
                f"probe_k: got {self.probe_k}, equal to matrix_k; a probe must not pass for a matrix"
            )
        if "prompt_manifest" not in self.data or "tasks" not in self.data:
            raise ValueError("data: need at least tasks and prompt_manifest by SHA-256")
        if self.predecessor == self.experiment_id:
            raise ValueError("predecessor: an experiment cannot follow itself")
        budgets = [rung.thinking_budget_tokens for rung in self.rungs]
        if budgets != sorted(set(budgets)):
            raise ValueError(f"rungs: budgets {budgets} must strictly increase")
        for rung in self.rungs:
            self._check_rung(rung)
        return self

    def _check_rung(self, rung: Rung) -> None:
        where = f"rungs[{rung.thinking_budget_tokens}]"
        if self.engine.capture == "exact":
            if rung.capture_sizes is None:
                raise ValueError(f"{where}.capture_sizes: capture is exact, so the list must be registered")
            try:
                check_capture_list(rung.capture_sizes, rung.max_num_seqs)
            except FitladderError as error:
                raise ValueError(f"{where}.capture_sizes: {error}") from error
        elif rung.capture_sizes is not None:
            raise ValueError(
                f"{where}.capture_sizes: capture is {self.engine.capture}, so no list may be registered"
            )
        longest = self.longest_total_tokens(rung)
        if longest > self.engine.max_model_len_tokens:
            raise ValueError(
                f"{where}.thinking_budget_tokens: prompt + budget + close + answer is {longest}, "
                f"max_model_len_tokens is {self.engine.max_model_len_tokens}"
            )
        if rung.thinking_budget_tokens < self.loop_rule.tail_tokens:
            raise ValueError(
                f"{where}.thinking_budget_tokens: got {rung.thinking_budget_tokens}, shorter than the "
                f"{self.loop_rule.tail_tokens}-token loop tail, so no loop could ever be told"
            )

    def longest_total_tokens(self, rung: Rung) -> int:
        """Longest prompt + thinking budget + close sequence + answer limit, in tokens."""
        return (
            self.longest_prompt_tokens
            + rung.thinking_budget_tokens
            + len(self.thinking.close_token_ids)
            + self.sampling.answer_max_tokens
        )

    def rung(self, budget_tokens: int) -> Rung:
        """The rung with this budget. Raises KeyError where none is registered."""
        for rung in self.rungs:
            if rung.thinking_budget_tokens == budget_tokens:
                return rung
        raise KeyError(budget_tokens)

    def k(self, phase: Phase) -> int:
        """Samples a record in this phase."""
        return self.probe_k if phase == "probe" else self.matrix_k

    def protocol_section(self) -> dict[str, Any]:
        """The part of the section that the binding covers, as plain data."""
        return self.model_dump(mode="json", exclude={"state", "artifacts"})
