"""Stage history@X: recorded numbers and hashes of an experiment that ended before this repository.

There is no row to audit again: the outputs say so, carry the recorded digests, and decide nothing.
"""

from pathlib import Path
from typing import Any

from fitladder.canonical import canonical_bytes, sha256_file
from fitladder.errors import InputRefused
from fitladder.files.atomic import write_output
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Experiment
from fitladder.records.history import NO_ROWS, History, RecordedPhase, history_path, load_history
from fitladder.records.layout import bundle_folder
from fitladder.records.registry import Registry
from fitladder.registry.data_paths import audits_folder, selection_path, semantics_path
from fitladder.stages.figures import PhaseFigures, RateFigure, write_figures

__all__ = ["make_history"]


def make_history(registry: Registry, experiment_id: str, data_dir: Path) -> str:
    """Write the figures of every recorded audit, and the recorded end of the ladder. Raises InputRefused."""
    experiment = registry.experiment(experiment_id)
    path = history_path(data_dir, experiment_id)
    history = load_history(data_dir, experiment_id)
    if history is None:
        raise InputRefused(f"{path} is absent", need="the registered figures of a recorded experiment")
    figures = [one for phase in history.phases if (one := _figures(phase, experiment))]
    write_figures(audits_folder(data_dir, experiment_id), figures)
    selection = _selection(history, sha256_file(path))
    chosen = selection_path(data_dir, experiment_id)
    write_output(chosen, canonical_bytes(selection))
    semantics = {
        "schema_version": 1,
        "experiment_id": experiment_id,
        "selection_sha256": sha256_file(chosen),
        "semantics": {"eligible": False, "reason": NO_ROWS},
    }
    write_output(semantics_path(data_dir, experiment_id), canonical_bytes(semantics))
    return f"{experiment_id}: {len(figures)} recorded audits, {history.state}; no rows are kept here"


def _selection(history: History, source_sha256: str) -> dict[str, Any]:
    recorded = history.selection
    return {
        "schema_version": 1,
        "experiment_id": history.experiment_id,
        "source": "registered history",
        "source_sha256": source_sha256,
        "state": history.state,
        "pass": recorded.passed if recorded else None,
        "selected_thinking_budget_tokens": recorded.selected_thinking_budget_tokens if recorded else None,
        "recorded_selection_sha256": recorded.sha256 if recorded else None,
        "recorded_audits": {
            bundle_folder(_key(history, phase)): phase.audit_sha256
            for phase in history.phases
            if phase.audit_sha256
        },
    }


def _key(history: History, phase: RecordedPhase) -> BundleKey:
    return BundleKey(
        experiment_id=history.experiment_id,
        thinking_budget_tokens=phase.thinking_budget_tokens,
        phase=phase.phase,
    )


def _figures(phase: RecordedPhase, experiment: Experiment) -> PhaseFigures | None:
    found, generation, limits = phase.termination, phase.generation, experiment.thresholds
    if found is None or generation is None:
        return None
    below, at_most = limits.unresolved_rate_below, limits.loop_rate_at_most
    return PhaseFigures(
        thinking_budget_tokens=phase.thinking_budget_tokens,
        phase=phase.phase,
        samples=found.samples,
        rates=(
            RateFigure("unresolved", found.unresolved, float(100 * below.value)),
            RateFigure(
                "answer limit",
                found.answer_limit_contacts,
                float(100 * limits.answer_limit_rate_below.value),
            ),
            RateFigure("loops", found.loops, float(100 * at_most.value)),
        ),
        is_adequate=limits.are_kept(
            unresolved=found.unresolved,
            answer_limit=found.answer_limit_contacts,
            loops=found.loops,
            samples=found.samples,
        ),
        sampled_tokens=generation.sampled_tokens,
        generation_s=generation.generation_s,
        preemptions=None,
    )
