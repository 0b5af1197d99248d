"""Semantic analysis: decode, parse, choose and freeze, and only then load the hidden examples and grade.

Where nothing was selected, no file is opened and no token decoded: the report holds the reason. The loader of
the hidden examples takes the digest of the frozen choices, so it cannot run before they exist.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from fitladder.domains.macros.files import TaskInputs
from fitladder.domains.macros.library import Library
from fitladder.domains.macros.tasks import HiddenTasks
from fitladder.errors import InputRefused
from fitladder.frozen import Frozen
from fitladder.records.experiment import ARMS
from fitladder.records.settings import Semantics
from fitladder.semantics.choose import Choice, ScoredSample, choices_sha256, choose, score_samples
from fitladder.semantics.grade import check_hidden, grade
from fitladder.semantics.metrics import ArmMetrics, ProgramRow, TaskRow, arm_metrics, program_row, task_row
from fitladder.semantics.parse import (
    MAX_ANSWER_CHARACTERS,
    Candidate,
    Limits,
    Reason,
    Rejection,
    parse_answer,
)
from fitladder.semantics.selected_samples import AnswerRow, NothingSelected, SelectedSamples, check_rows
from fitladder.semantics.semantic_gates import SemanticGate, judge_gates, render_verdict

__all__ = ["IneligibleReport", "SemanticReport", "analyse"]

Decode = Callable[[Sequence[int]], str]


class IneligibleReport(Frozen):
    """Report of an experiment from which nothing was selected, with the reason."""

    eligible: Literal[False] = False
    reason: str


class SemanticReport(Frozen):
    """Report of the selected samples: counts, gates and programs, but no text of an answer."""

    eligible: Literal[True] = True
    experiment_id: str
    thinking_budget_tokens: int
    samples_per_record: int
    evidence_sha256: str
    choices_sha256: str
    hidden_sha256: str
    is_passed: bool
    gates: tuple[SemanticGate, ...]
    verdict: str
    arms: dict[str, ArmMetrics]
    tasks: tuple[TaskRow, ...]
    samples: tuple[ProgramRow, ...]


def analyse(
    selected: SelectedSamples | NothingSelected,
    registered: Semantics,
    limits: Limits,
    *,
    load_inputs: Callable[[], TaskInputs],
    decode: Decode,
    load_hidden: Callable[[str], HiddenTasks],
) -> SemanticReport | IneligibleReport:
    """Analyse the selected samples of both arms.

    Args:
        selected: what the ladder selected, verified, or why there is nothing.
        registered: thresholds of the semantic gates.
        limits: on programs and on what may end an answer.
        load_inputs: reads the visible task files.
        decode: answer ids to text.
        load_hidden: reads the hidden tasks; its argument is the digest of the frozen choices.

    An answer that cannot be decoded or parsed never raises: it is a rejected sample with its reason. Raises
    BundleError on samples that are not all of both arms, InputRefused on hidden tasks of another task set.
    """
    if not isinstance(selected, SelectedSamples):
        return IneligibleReport(reason=selected.reason)
    inputs = load_inputs()
    tasks = inputs.visible.tasks
    libraries = {arm: _library(inputs, arm) for arm in ARMS}
    rows = check_rows(selected, [f"{task.id}::{arm}" for arm in ARMS for task in tasks])
    scored: dict[str, tuple[ScoredSample, ...]] = {}
    choices: dict[str, Choice] = {}
    for arm in ARMS:
        for task in tasks:
            name = f"{task.id}::{arm}"
            results = [_parse(row, libraries[arm], limits, decode) for row in rows[name]]
            scored[name] = score_samples(results, task.visible)
            choices[name] = choose(name, scored[name])
    frozen = choices_sha256(list(choices.values()))

    hidden = check_hidden(load_hidden(frozen), tasks)
    task_rows: dict[str, list[TaskRow]] = {arm: [] for arm in ARMS}
    for arm in ARMS:
        for task, hidden_task in zip(tasks, hidden, strict=True):
            name = f"{task.id}::{arm}"
            graded = grade(choices[name], scored[name], task, hidden_task)
            task_rows[arm].append(task_row(task, choices[name], scored[name], graded))
    samples = [program_row(name, one) for name, group in scored.items() for one in group]
    arms: dict[str, ArmMetrics] = {
        arm: arm_metrics(task_rows[arm], [row for row in samples if row.record_id.endswith(f"::{arm}")])
        for arm in ARMS
    }
    gates = judge_gates(arms["base"], arms["designed_ceiling"], registered)
    return SemanticReport(
        experiment_id=selected.experiment_id,
        thinking_budget_tokens=selected.thinking_budget_tokens,
        samples_per_record=selected.samples_per_record,
        evidence_sha256=selected.evidence_sha256,
        choices_sha256=frozen,
        hidden_sha256=inputs.visible.hidden_sha256,
        is_passed=all(gate.is_passed for gate in gates),
        gates=gates,
        verdict=render_verdict(gates, arms["base"], arms["designed_ceiling"]),
        arms=arms,
        tasks=tuple(row for arm in ARMS for row in task_rows[arm]),
        samples=tuple(samples),
    )


def _library(inputs: TaskInputs, arm: str) -> Library:
    library = inputs.libraries.libraries.get(arm)
    if library is None:
        raise InputRefused("libraries.json lacks an arm", need=arm)
    return library


def _parse(row: AnswerRow, library: Library, limits: Limits, decode: Decode) -> Candidate | Rejection:
    if not row.answer_token_ids:
        return Rejection(Reason.EMPTY)
    if len(row.answer_token_ids) > MAX_ANSWER_CHARACTERS:
        return Rejection(Reason.TOO_LONG, f"{len(row.answer_token_ids)} tokens")
    try:
        text = decode(row.answer_token_ids)
    except Exception as failure:  # whatever a decoder raises on one answer must not lose the others
        return Rejection(Reason.UNDECODABLE, ascii(f"{type(failure).__name__}: {failure}"[:120]))
    return parse_answer(text, library, limits)
