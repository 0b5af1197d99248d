"""Stage semantics@X: the semantic report on a selected matrix. Without a selection no answer is read.

Passes one and two (receipts, audits of the whole ladder) are repeated here before a token is decoded; the
sealed half of the task set is opened only after the choices are frozen.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fitladder.canonical import canonical_bytes, canonical_sha256, parse_json, sha256_file
from fitladder.domains.macros.files import TaskInputs, parse_hidden, parse_inputs
from fitladder.domains.macros.tasks import HiddenTasks
from fitladder.errors import LadderRefused
from fitladder.evidence.selection_file import NO_SELECTION, load_selection
from fitladder.files.atomic import write_output
from fitladder.ladder.select import finalise
from fitladder.prompts.tokenizer import load_tokenizer
from fitladder.records.experiment import Experiment
from fitladder.records.registry import Registry
from fitladder.records.selection import Selection
from fitladder.registry.data_paths import selection_path, semantics_path
from fitladder.registry.inputs import load_input
from fitladder.semantics.analyse import IneligibleReport, SemanticReport, analyse
from fitladder.semantics.parse import Limits
from fitladder.semantics.selected_samples import AnswerRow, NothingSelected, SelectedSamples
from fitladder.stages.selection import recompute_ladder
from fitladder.store.verify_root import VerifiedRoot
from fitladder.workspace import Workspace

__all__ = ["ladder_history", "make_semantics"]

COLUMNS = (
    "record_id",
    "sample_index",
    "stage1_token_ids",
    "stage2_token_ids",
    "stage2_finish_reason",
    "answer_tokens",
)
OPEN_HALF: dict[str, Any] = {
    "tasks.json": "tasks",
    "libraries.json": "libraries",
    "demonstrations.json": "demonstrations",
}


def make_semantics(registry: Registry, experiment_id: str, data_dir: Path) -> str:
    """Write the semantic report, or why there is none. Raises as the passes do."""
    experiment = registry.experiment(experiment_id)
    selection = load_selection(data_dir, experiment_id)
    report = _analyse(experiment, selection, data_dir)
    body = {
        "schema_version": 1,
        "experiment_id": experiment_id,
        "selection_sha256": sha256_file(selection_path(data_dir, experiment_id)),
        "semantics": report.model_dump(mode="json"),
    }
    write_output(semantics_path(data_dir, experiment_id), canonical_bytes(body))
    if isinstance(report, SemanticReport):
        return f"{experiment_id}: {report.verdict}"
    return f"{experiment_id}: no answer was read: {report.reason}"


def _analyse(
    experiment: Experiment, selection: Selection | None, data_dir: Path
) -> SemanticReport | IneligibleReport:
    if selection is None or selection.selected is None:
        return IneligibleReport(reason=selection.reason if selection else NO_SELECTION)

    def open_half() -> TaskInputs:
        return parse_inputs(
            {file: load_input(data_dir, experiment, name) for file, name in OPEN_HALF.items()}
        )

    def sealed_half(choices_sha256: str) -> HiddenTasks:
        if not choices_sha256:
            raise LadderRefused("the sealed half is asked for before the choices are frozen")
        tasks = parse_json(load_input(data_dir, experiment, "tasks"), where="tasks")
        return parse_hidden(load_input(data_dir, experiment, "hidden"), tasks["hidden_sha256"])

    history = ladder_history(experiment, selection, data_dir)
    return analyse(
        history,
        experiment.semantics,
        Limits(),
        load_inputs=open_half,
        decode=_decoder(experiment, data_dir),
        load_hidden=sealed_half,
    )


def _decoder(experiment: Experiment, data_dir: Path) -> Callable[[Sequence[int]], str]:
    """Ids to text by the registered tokenizer. Raises InputRefused where its file is absent or another."""
    folder = Workspace(data_dir.parent, {}).model_folder(experiment.model)
    return load_tokenizer(folder / "tokenizer.json", experiment.model.tokenizer_sha256).decode


def ladder_history(
    experiment: Experiment, selection: Selection, data_dir: Path
) -> SelectedSamples | NothingSelected:
    """Passes one and two again, in one pass over the bundles, and the answer ids of the selected rung.

    Raises what `recompute_ladder` and `finalise` raise: `selection` must be what the bundles still give.
    """
    ladder = recompute_ladder(data_dir, experiment)
    finalise(experiment, ladder.recorded, ladder.recomputed, selection)
    if ladder.found is None or selection.selected is None:
        return NothingSelected("nothing was selected")
    return SelectedSamples(
        experiment_id=experiment.experiment_id,
        thinking_budget_tokens=selection.selected,
        samples_per_record=experiment.matrix_k,
        evidence_sha256=canonical_sha256([one.model_dump(mode="json") for one in ladder.recomputed]),
        rows=_answers(ladder.found, selection.selected),
    )


def _answers(found: VerifiedRoot, budget_tokens: int) -> tuple[AnswerRow, ...]:
    """Answer ids of base and designed at the selected rung; a probe's rows are never among them."""
    rows: list[AnswerRow] = []
    for bundle in found.bundles:
        if bundle.key.thinking_budget_tokens != budget_tokens or bundle.key.phase == "probe":
            continue
        table = bundle.columns(COLUMNS)
        stage1, stage2 = table.token_lists("stage1_token_ids"), table.token_lists("stage2_token_ids")
        ran = table.texts("stage2_finish_reason")
        for row, record_id in enumerate(table.texts("record_id")):
            count = int(table.integers("answer_tokens")[row])
            ids = stage2[row] if ran[row] is not None else stage1[row][len(stage1[row]) - count :]
            rows.append(
                AnswerRow(
                    str(record_id), int(table.integers("sample_index")[row]), tuple(int(one) for one in ids)
                )
            )
    return tuple(rows)
