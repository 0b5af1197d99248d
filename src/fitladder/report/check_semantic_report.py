"""Check that a semantic report follows from its own rows, the registered gates and its selection.

Pure: it sums and judges what stands in the report; it decodes nothing and opens no file.
"""

from collections.abc import Iterator
from typing import Any

from fitladder.errors import LineageError
from fitladder.records.experiment import ARMS, Experiment
from fitladder.records.selection import Selection
from fitladder.semantics.analyse import SemanticReport
from fitladder.semantics.metrics import arm_metrics
from fitladder.semantics.semantic_gates import judge_gates, render_verdict

__all__ = ["check_semantic_report"]


def check_semantic_report(
    report: SemanticReport, experiment: Experiment, selection: Selection | None, *, where: str
) -> None:
    """Refuse a semantic report whose figures, gates or verdict do not follow from its rows.

    Args:
        report: the parsed semantic report.
        experiment: the registered experiment, with its semantic gates.
        selection: the decision that the report was made from; None where there is none.
        where: names the file in messages.

    Raises LineageError naming the first field that differs.
    """
    for field, got, need in _pairs(report, experiment, selection):
        if got != need:
            raise LineageError(
                f"{where}: semantics.{field}",
                got=str(got)[:200],
                need=str(need)[:200],
                do=f"run `fitladder stage semantics {experiment.experiment_id}`",
            )


def _pairs(
    report: SemanticReport, experiment: Experiment, selection: Selection | None
) -> Iterator[tuple[str, Any, Any]]:
    """(field, as recorded, as it follows), each only after those that it is made of."""
    k = experiment.matrix_k
    yield "experiment_id", report.experiment_id, experiment.experiment_id
    yield "thinking_budget_tokens", report.thinking_budget_tokens, selection.selected if selection else None
    yield "samples_per_record", report.samples_per_record, k
    yield "arms", sorted(report.arms), sorted(ARMS)
    for arm in ARMS:
        tasks = [row for row in report.tasks if row.record_id == f"{row.task_id}::{arm}"]
        samples = [row for row in report.samples if row.record_id.endswith(f"::{arm}")]
        yield f"tasks of {arm}", len({row.record_id for row in tasks}), experiment.records_per_arm
        yield (
            f"samples of {arm}",
            sorted((row.record_id, row.sample_index) for row in samples),
            sorted((row.record_id, index) for row in tasks for index in range(k)),
        )
        for row in tasks:
            own = [one for one in samples if one.record_id == row.record_id]
            yield f"tasks: samples of {row.record_id}", row.samples, len(own)
            valid = sum(one.rejected is None for one in own)
            yield f"tasks: valid_samples of {row.record_id}", row.valid_samples, valid
        recomputed = arm_metrics(tasks, samples).model_dump()
        for name, figure in report.arms[arm].model_dump().items():
            yield f"arms.{arm}.{name}", figure, recomputed[name]
    yield "tasks", len(report.tasks), len(ARMS) * experiment.records_per_arm
    yield "samples", len(report.samples), len(ARMS) * experiment.records_per_arm * k
    base, designed = report.arms["base"], report.arms["designed_ceiling"]
    gates = judge_gates(base, designed, experiment.semantics)
    yield "gates", [one.name for one in report.gates], [one.name for one in gates]
    for recorded, follows in zip(report.gates, gates, strict=True):
        for name, value in recorded.model_dump().items():
            yield f"gates.{recorded.name}.{name}", value, getattr(follows, name)
    yield "is_passed", report.is_passed, all(one.is_passed for one in gates)
    yield "verdict", report.verdict, render_verdict(gates, base, designed)
