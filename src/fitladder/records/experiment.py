"""Experiment: one registered protocol, the frozen model of one section of params.yaml.

Unknown fields are refused, and each rule over several fields names its field. Nothing here reads a file,
knows a path on this machine, or knows what happened later.
"""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from fitladder.capacity.capture_coverage import check_capture_list
from fitladder.capacity.kv_blocks import longest_sequence_tokens
from fitladder.capacity.kv_rule import KvRule
from fitladder.errors import FitladderError
from fitladder.frozen import Count, Frozen, Identifier, Sha256
from fitladder.records.settings import (
    Artifacts,
    Engine,
    LoopRule,
    Model,
    Rung,
    Sampling,
    Semantics,
    Thinking,
    Thresholds,
)

__all__ = [
    "ARMS",
    "ARM_OF_PHASE",
    "PHASES",
    "Arm",
    "Experiment",
    "InputName",
    "Phase",
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
    kv_rule: KvRule
    loop_rule: LoopRule
    thresholds: Thresholds
    semantics: Semantics
    data: dict[InputName, Sha256]
    artifacts: Artifacts

    @model_validator(mode="after")
    def _cross_checks(self) -> Self:
        if self.probe_k >= self.matrix_k:
            raise ValueError(
                f"matrix_k: got {self.matrix_k}, need more than probe_k {self.probe_k}; "
                "a matrix is no probe, and never less than one"
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
        longest = self.longest_sequence_tokens(rung)
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

    def longest_sequence_tokens(self, rung: Rung) -> int:
        """Tokens of the longest sequence of a rung, at the registered bound on prompts."""
        return self.sequence_tokens(rung, self.longest_prompt_tokens)

    def sequence_tokens(self, rung: Rung, prompt_tokens: int) -> int:
        """Tokens that a sample behind a prompt of `prompt_tokens` can grow to (capacity/kv_blocks.py).

        Raises GateRefused where `prompt_tokens` is no positive integer.
        """
        return longest_sequence_tokens(
            prompt_tokens,
            rung.thinking_budget_tokens,
            len(self.thinking.close_token_ids),
            self.sampling.answer_max_tokens,
        )

    def rung(self, budget_tokens: int) -> Rung:
        """The rung with this thinking budget in tokens. Raises KeyError where none is registered."""
        for rung in self.rungs:
            if rung.thinking_budget_tokens == budget_tokens:
                return rung
        raise KeyError(budget_tokens)

    def k(self, phase: Phase) -> int:
        """Samples of each record in this phase."""
        return self.probe_k if phase == "probe" else self.matrix_k

    def protocol_section(self) -> dict[str, Any]:
        """The part of the section that the binding covers, as plain data."""
        return self.model_dump(mode="json", exclude={"state", "artifacts"})
