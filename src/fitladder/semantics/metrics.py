"""Counts of a semantic analysis: a row for each sample and for each task and arm, and sums for each arm.

Rates are formed only where a gate compares them.
"""

from collections import Counter
from collections.abc import Sequence

from fitladder.domains.macros.tasks import Split, VisibleTask
from fitladder.frozen import Frozen
from fitladder.semantics.choose import Choice, ScoredSample
from fitladder.semantics.grade import Grade
from fitladder.semantics.parse import Candidate, Rejection

__all__ = ["ArmMetrics", "ProgramRow", "SplitMetrics", "TaskRow", "arm_metrics", "program_row", "task_row"]


class ProgramRow(Frozen):
    """One sample: its program as written, or the reason (`parse.Reason`) why it has none."""

    record_id: str
    sample_index: int
    surface: tuple[str, ...] | None
    visible_right: int
    rejected: str | None
    detail: str


class TaskRow(Frozen):
    """One task in one arm: its samples, the choice, and the grade."""

    record_id: str
    task_id: str
    split: Split
    samples: int
    parsed_samples: int
    valid_samples: int
    macro_samples: int
    chosen_sample: int | None
    chosen_expansion: tuple[str, ...] | None
    visible_right: int
    visible_total: int
    hidden_right: int
    hidden_total: int
    is_solved: bool
    is_oracle_solved: bool


class SplitMetrics(Frozen):
    """Counts of the tasks of one split in one arm."""

    tasks: int
    tasks_with_macro_candidate: int
    solved_tasks: int
    oracle_solved_tasks: int


class ArmMetrics(Frozen):
    """Counts of one arm; `rejections` by reason."""

    samples: int
    parsed_samples: int
    valid_samples: int
    macro_samples: int
    rejections: dict[str, int]
    reuse: SplitMetrics
    no_reuse: SplitMetrics


def program_row(record_id: str, one: ScoredSample) -> ProgramRow:
    """Row of a scored sample of a record."""
    rejection = one.result if isinstance(one.result, Rejection) else None
    return ProgramRow(
        record_id=record_id,
        sample_index=one.sample_index,
        surface=one.result.surface if isinstance(one.result, Candidate) else None,
        visible_right=one.visible_right,
        rejected=rejection.reason.value if rejection else None,
        detail=rejection.detail if rejection else "",
    )


def task_row(task: VisibleTask, choice: Choice, scored: Sequence[ScoredSample], graded: Grade) -> TaskRow:
    """Row of a task in one arm, from its choice, its scored samples and its grade."""
    valid = [one.result for one in scored if isinstance(one.result, Candidate)]
    too_deep = [one for one in scored if isinstance(one.result, Rejection) and one.result.is_parsed]
    return TaskRow(
        record_id=choice.record_id,
        task_id=task.id,
        split=task.split,
        samples=len(scored),
        parsed_samples=len(valid) + len(too_deep),
        valid_samples=len(valid),
        macro_samples=sum(one.uses_macro for one in valid),
        chosen_sample=choice.sample_index,
        chosen_expansion=choice.expansion,
        visible_right=choice.visible_right,
        visible_total=len(task.visible),
        hidden_right=graded.hidden_right,
        hidden_total=graded.hidden_total,
        is_solved=graded.is_solved,
        is_oracle_solved=graded.is_oracle_solved,
    )


def arm_metrics(tasks: Sequence[TaskRow], samples: Sequence[ProgramRow]) -> ArmMetrics:
    """Sums over the rows of one arm."""
    rejections = Counter(row.rejected for row in samples if row.rejected)
    return ArmMetrics(
        samples=len(samples),
        parsed_samples=sum(row.parsed_samples for row in tasks),
        valid_samples=sum(row.valid_samples for row in tasks),
        macro_samples=sum(row.macro_samples for row in tasks),
        rejections={reason: rejections[reason] for reason in sorted(rejections)},
        reuse=_split([row for row in tasks if row.split == "reuse"]),
        no_reuse=_split([row for row in tasks if row.split == "no_reuse"]),
    )


def _split(rows: Sequence[TaskRow]) -> SplitMetrics:
    return SplitMetrics(
        tasks=len(rows),
        tasks_with_macro_candidate=sum(row.macro_samples > 0 for row in rows),
        solved_tasks=sum(row.is_solved for row in rows),
        oracle_solved_tasks=sum(row.is_oracle_solved for row in rows),
    )
