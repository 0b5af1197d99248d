"""View of one experiment: its records read, checked against each other, as what the page shows.

Missing pieces are shown as not run; broken ones refuse.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fitladder.canonical import sha256_file
from fitladder.errors import LineageError, RegistrationError
from fitladder.evidence.checkout_bundles import load_bundles
from fitladder.evidence.outcomes import outcomes
from fitladder.evidence.selection_file import load_selection
from fitladder.files.file_record import file_record_at
from fitladder.ladder.authorise import next_phase
from fitladder.ladder.select import select
from fitladder.ladder.walk import walk
from fitladder.records.audit import TerminationAudit
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Experiment
from fitladder.records.history import History
from fitladder.records.outcome import PhaseOutcome
from fitladder.records.registry import Registry
from fitladder.registry.binding import bind
from fitladder.registry.data_paths import selection_path
from fitladder.report.approvals import approval_lines, approvals_note
from fitladder.report.bundle_phases import bundle_phases, recorded_audits
from fitladder.report.check_recorded import check_recorded
from fitladder.report.comparisons import diagnostic_comparisons, phase_comparisons
from fitladder.report.history_phases import history_path, history_phases, history_selection, load_history
from fitladder.report.ladder_status import decisions, ladder_state, rung_reached, status_line
from fitladder.report.narrative import load_narrative
from fitladder.report.narrative_figures import compared_figures, phase_figures, registered_figures
from fitladder.report.protocol_rows import protocol_rows
from fitladder.report.refused_widths import refused_widths
from fitladder.report.running_log import load_log
from fitladder.report.semantic_results import load_semantic_results
from fitladder.report.view import Comparison, ExperimentView, FileEntry, PhaseView, Selection
from fitladder.store.verify_root import VerifiedRoot

__all__ = ["load_view"]


def load_view(experiment_id: str, data_dir: Path, registry: Registry) -> ExperimentView:
    """Everything that the page of one experiment shows.

    Args:
        experiment_id: a registered experiment.
        data_dir: the data folder; bundles in it are verified here, at the start of the stage.
        registry: params.yaml as it was loaded.

    Raises the first refusal among its records.
    """
    experiment = registry.experiment(experiment_id)
    history = load_history(data_dir, experiment_id)
    root = load_bundles(data_dir, experiment)
    if history is not None and root is not None:
        raise LineageError(
            f"{experiment_id} has both registered history and bundles",
            need="one source; they are never mixed",
        )
    audits = recorded_audits(data_dir, experiment, root)
    phases = (
        history_phases(history, experiment) if history else bundle_phases(data_dir, experiment, root, audits)
    )
    ladder = None if history else _ladder(experiment, root, audits)
    authorised = None if ladder is None else next_phase(experiment, ladder)
    selection = history_selection(history) if history else _selection(data_dir, experiment, ladder)
    comparisons = _comparisons(data_dir, registry, experiment, phases)
    approvals = approval_lines(data_dir, experiment_id, phases)
    narrative = load_narrative(
        data_dir / "narratives" / f"{experiment_id}.yaml", _facts(experiment, phases, comparisons)
    )
    status = status_line(experiment, phases, selection, authorised)
    bindings = sorted({phase.binding_sha256 for phase in phases if phase.binding_sha256})
    binding = " and ".join(bindings) or bind(experiment).binding_sha256
    return ExperimentView(
        experiment_id=experiment_id,
        state=ladder_state(experiment, selection),
        review=experiment.review,
        source="registered history" if history else "verified bundles",
        binding_sha256=binding,
        binding_note=HISTORIC_BINDING if history else BINDING,
        verdict=status.words,
        verdict_reason=status.reason,
        rung_reached=rung_reached(phases),
        protocol=protocol_rows(experiment),
        data=tuple((name, digest) for name, digest in experiment.data.items()),
        narrative=narrative,
        phases=phases,
        refused_widths=refused_widths(experiment, phases) if narrative.kind == "rehearsal" else (),
        approvals=approvals,
        approvals_note=HISTORIC_APPROVALS
        if history and not approvals
        else approvals_note(experiment, phases, approvals, signing=bool(registry.reviewers)),
        decisions=decisions(experiment, phases),
        selection=selection,
        semantic_results=load_semantic_results(data_dir, experiment, is_recorded=history is not None),
        comparisons=comparisons,
        files=_files(data_dir, history),
        commands=_commands(experiment_id, historic=history is not None, begun=root is not None),
        log=load_log(data_dir, experiment_id),
    )


BINDING = (
    "SHA-256 over the protocol section, the inputs and the code that can change a result (fitladder binding)."
)
HISTORIC_BINDING = (
    "As recorded by the experiment itself, by its own rule. It is not the digest that fitladder binding "
    "gives for the registered section here."
)
HISTORIC_APPROVALS = (
    "No approval chain of this experiment is kept here: it ran before Fitladder did. Nothing on this page "
    "proves who allowed its phases."
)


def _facts(
    experiment: Experiment, phases: tuple[PhaseView, ...], comparisons: tuple[Comparison, ...]
) -> dict[str, Any]:
    """The figures that authored words may name. `rung(B)` is its probe and has every phase below it."""
    rungs: dict[str, dict[str, Any]] = {}
    for phase in phases:
        figures = phase_figures(phase)
        rung = rungs.setdefault(str(phase.thinking_budget_tokens), {})
        rung[phase.phase] = figures
        if phase.phase == "probe":
            rung.update(figures)
    return {
        "registered": registered_figures(experiment),
        "rung": rungs,
        "compared": compared_figures(comparisons),
    }


def _comparisons(
    data_dir: Path, registry: Registry, experiment: Experiment, phases: tuple[PhaseView, ...]
) -> tuple[Comparison, ...]:
    """Recorded ancestors, oldest first, then the own phases; empty without an ancestor."""
    ancestors: list[Comparison] = []
    seen, name = {experiment.experiment_id}, experiment.predecessor
    while name is not None and name not in seen:
        seen.add(name)
        history = load_history(data_dir, name)
        if history is None:
            break
        try:
            older = registry.experiment(name)
        except RegistrationError:
            ancestors = [*diagnostic_comparisons(history), *ancestors]
            break
        ancestors = [*phase_comparisons(name, history_phases(history, older)), *ancestors]
        name = older.predecessor
    return (*ancestors, *phase_comparisons(experiment.experiment_id, phases)) if ancestors else ()


def _ladder(
    experiment: Experiment, root: VerifiedRoot | None, audits: Mapping[BundleKey, TerminationAudit]
) -> tuple[PhaseOutcome, ...] | None:
    """The verified history of the ladder; None while an audit of it is missing."""
    if root is None:
        return ()
    if len(audits) != len(root.bundles):
        return None
    return outcomes(root, tuple(audits.values()), experiment)


def _selection(
    data_dir: Path, experiment: Experiment, ladder: tuple[PhaseOutcome, ...] | None
) -> Selection | None:
    """The recorded decision. Raises LineageError where bundles and audits give another, to the word."""
    found = load_selection(data_dir, experiment.experiment_id)
    if found is None:
        return None
    path = selection_path(data_dir, experiment.experiment_id)
    position = None if ladder is None else walk(experiment, ladder)
    if ladder is None or position is None or position.state not in ("selected", "exhausted"):
        raise LineageError(
            f"{path} decides what bundles and audits do not",
            got=found.reason,
            need=position.reason if position else "an audit of every bundle",
            do=f"run `fitladder lineage pull {experiment.experiment_id}`",
        )
    do = f"run `fitladder lineage pull {experiment.experiment_id}`"
    check_recorded(found, select(experiment, ladder), path, long_field="rungs", source="bundles", do=do)
    return Selection(
        found.passed, found.selected, sha256_file(path), f"{found.reason[0].upper()}{found.reason[1:]}."
    )


def _files(data_dir: Path, history: History | None) -> tuple[FileEntry, ...]:
    """What is kept of a recorded experiment as a whole, the record that this page was made from first."""
    if history is None:
        return ()
    path = history_path(data_dir, history.experiment_id)
    record = file_record_at(path, hard_links=True)
    files = [FileEntry(f"data/history/{path.name}", record.bytes, record.sha256)]
    if history.tree:
        files.append(
            FileEntry(f"external root, {history.tree.files} files", history.tree.bytes, history.tree.sha256)
        )
    if history.selection:
        files.append(FileEntry("selection", history.selection.bytes, history.selection.sha256))
    return tuple(files)


def _commands(experiment_id: str, *, historic: bool, begun: bool) -> tuple[tuple[str, str], ...]:
    """What to type, each with what it proves; only what can be typed in its state."""
    if historic:
        return (
            (f"fitladder validate {experiment_id}", "the registered protocol is valid"),
            (
                f"sha256sum data/history/{experiment_id}.json",
                "the registered figures that this page was made from; the table above has their SHA-256",
            ),
            (
                f"fitladder inputs fetch {experiment_id} --from PATH",
                "the inputs, refused unless each has the SHA-256 above",
            ),
            (
                f"fitladder report {experiment_id}",
                "makes this page again, the same bytes; a number that disagrees refuses",
            ),
        )
    if not begun:
        return (
            (f"fitladder validate {experiment_id}", "the registered protocol is valid"),
            (f"fitladder binding {experiment_id} --explain", "everything that the binding above covers"),
            (f"fitladder report {experiment_id}", "makes this page again, the same bytes"),
        )
    return (
        (f"fitladder lineage pull {experiment_id}", "fetches bundles, audits and this page by content"),
        (
            f"fitladder verify {experiment_id}",
            "every byte against its receipt; one flipped byte refuses by name",
        ),
        (f"fitladder audit {experiment_id}", "the audits again, from token ids alone"),
        (f"fitladder select {experiment_id}", "the ladder's decision again, from audits recomputed"),
        (f"fitladder binding {experiment_id} --explain", "everything that the binding above covers"),
        (f"fitladder report {experiment_id}", "makes this page again, the same bytes"),
    )
