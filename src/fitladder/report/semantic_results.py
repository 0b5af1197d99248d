"""Result of the semantic report for a page, or the reason why no answer was read.

Reads the one file that the stage `semantics` made; counts and gates only, no answer text.
"""

from pathlib import Path

from fitladder.canonical import parse_model, read_json, sha256_file
from fitladder.errors import LineageError
from fitladder.evidence.selection_file import NO_SELECTION, load_selection
from fitladder.records.experiment import Experiment
from fitladder.records.history import NO_ROWS
from fitladder.records.selection import Selection
from fitladder.registry.data_paths import selection_path, semantics_path
from fitladder.report.check_semantic_report import check_semantic_report
from fitladder.report.view import SemanticResults
from fitladder.semantics.analyse import IneligibleReport, SemanticReport

__all__ = ["load_semantic_results"]


def load_semantic_results(
    data_dir: Path, experiment: Experiment, *, is_recorded: bool
) -> SemanticResults | None:
    """The semantic result; None before its stage ran.

    Args:
        data_dir: the data folder that holds the selection and the semantic report.
        experiment: the registered experiment.
        is_recorded: whether it is registered history, of which no answer can be read.

    Raises LineageError on a foreign or broken file, and where gates, verdict or an arm's figures do not
    follow from the rows of the report.
    """
    experiment_id = experiment.experiment_id
    path = semantics_path(data_dir, experiment_id)
    if not path.is_file():
        return None
    plain = read_json(path, error=LineageError)
    if not isinstance(plain, dict) or plain.get("experiment_id") != experiment_id:
        raise LineageError(f"{path} is not of this experiment", need=experiment_id)
    decided = selection_path(data_dir, experiment_id)
    if decided.is_file() and plain.get("selection_sha256") != (now := sha256_file(decided)):
        raise LineageError(
            f"{path} was made from another selection",
            got=plain.get("selection_sha256"),
            need=now,
            do=f"run `fitladder stage semantics {experiment_id}`",
        )
    body = plain.get("semantics")
    if isinstance(body, dict) and body.get("eligible") is False:
        found = parse_model(IneligibleReport, body, where=str(path), error=LineageError)
        need = NO_ROWS if is_recorded else _expected_reason(load_selection(data_dir, experiment_id))
        if found.reason != need:
            raise LineageError(f"{path}: reason", got=found.reason, need=need)
        return SemanticResults(False, f"No answer was read: {found.reason}.", (), ())
    if is_recorded:
        raise LineageError(f"{path} has answers of registered history", need=NO_ROWS)
    report = parse_model(SemanticReport, body, where=str(path), error=LineageError)
    check_semantic_report(report, experiment, load_selection(data_dir, experiment_id), where=str(path))
    return SemanticResults(
        passed=report.is_passed,
        sentence=report.verdict,
        gates=tuple(
            (gate.name.replace("_", " "), gate.got, gate.need, "passed" if gate.is_passed else "failed")
            for gate in report.gates
        ),
        arms=tuple(
            (
                arm.replace("_", " "),
                f"{figures.parsed_samples} of {figures.samples}",
                *(
                    f"{split.solved_tasks} of {split.tasks} solved, {split.oracle_solved_tasks} by any sample"
                    for split in (figures.reuse, figures.no_reuse)
                ),
            )
            for arm, figures in report.arms.items()
        ),
    )


def _expected_reason(selection: Selection | None) -> str:
    """The reason that follows from the selection, in its words."""
    if selection is None:
        return NO_SELECTION
    return "answers read" if selection.passed else selection.reason
