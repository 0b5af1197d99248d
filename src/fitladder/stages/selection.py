"""Stage selection@X: the selected rung, or explicitly none, or what is due next. Content-blind.

Every audit is recomputed from its bundle before it counts, and a decision is made under the very binding that
the phases ran under. A decision that stands is never replaced.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fitladder.canonical import canonical_bytes, parse_model, read_json
from fitladder.errors import BindingChanged, LineageError
from fitladder.evidence.audit_bundle import audit_bundle
from fitladder.evidence.checkout_bundles import begun, load_bundles
from fitladder.evidence.outcomes import outcomes
from fitladder.evidence.selection_file import load_selection
from fitladder.files.atomic import write_output
from fitladder.ladder.authorise import next_phase
from fitladder.ladder.select import finalise
from fitladder.ladder.walk import walk
from fitladder.records.audit import TerminationAudit
from fitladder.records.experiment import Experiment
from fitladder.records.outcome import PhaseOutcome
from fitladder.records.registry import Registry
from fitladder.registry.binding import bind, moved
from fitladder.registry.data_paths import audits_folder, sealed_paths, selection_path
from fitladder.sandbox.audit_hook import content_blind, no_new_files
from fitladder.store.verify_root import VerifiedRoot

__all__ = ["check_whole_binding", "make_selection", "recompute_ladder"]


def make_selection(registry: Registry, experiment_id: str, data_dir: Path) -> str:
    """Write the selection, or where the ladder stands while it is not at its end.

    Raises the kinds of BundleError, BindingChanged, LadderRefused, LineageError.
    """
    experiment = registry.experiment(experiment_id)
    existing = load_selection(data_dir, experiment_id)
    with content_blind(sealed_paths(data_dir, experiment_id)):
        ladder = recompute_ladder(data_dir, experiment)
    recomputed = ladder.recomputed
    position = walk(experiment, recomputed)
    path = selection_path(data_dir, experiment_id)
    if position.state in ("selected", "exhausted"):
        selection = finalise(experiment, ladder.recorded, recomputed, existing)
        write_output(path, canonical_bytes(selection))
        return f"{experiment_id}: {selection.reason}"
    if existing is not None:
        raise LineageError(
            f"{path} holds a decision that the bundles no longer give",
            got=position.reason,
            need=existing.reason,
            do=f"run `fitladder lineage pull {experiment_id}`",
        )
    write_output(path, canonical_bytes(_undecided(experiment, recomputed)))
    return f"{experiment_id}: no selection yet: {position.reason}"


@dataclass(frozen=True)
class RecomputedLadder:
    """Outcomes as the audit files record them and as the verified bundles give them; `found` may be None."""

    found: VerifiedRoot | None
    recorded: tuple[PhaseOutcome, ...]
    recomputed: tuple[PhaseOutcome, ...]


def recompute_ladder(data_dir: Path, experiment: Experiment) -> RecomputedLadder:
    """Verify and audit the bundles of `data_dir`, and read the recorded audits of them, in one pass.

    Raises the kinds of BundleError, BindingChanged where a phase ran under another binding, decision code
    included, LineageError on a broken audit file or where audits and bundles are not of the same phases.
    """
    found = load_bundles(data_dir, experiment)
    folder = audits_folder(data_dir, experiment.experiment_id) / "phases"
    recorded = [_recorded_audit(path) for path in sorted(folder.glob("*.json"))]
    if found is None:
        if recorded:
            raise LineageError(f"{folder} holds audits of bundles that are not here", got=len(recorded))
        return RecomputedLadder(None, (), ())
    check_whole_binding(found, experiment)
    with no_new_files():
        audits = [audit_bundle(bundle, experiment) for bundle in found.bundles]
        return RecomputedLadder(
            found, outcomes(found, recorded, experiment), outcomes(found, audits, experiment)
        )


def _recorded_audit(path: Path) -> TerminationAudit:
    plain = read_json(path, error=LineageError)
    return parse_model(TerminationAudit, plain, where=str(path), error=LineageError)


def check_whole_binding(found: VerifiedRoot, experiment: Experiment) -> None:
    """Refuse a decision under another binding than the phases ran under, decision code included.

    Raises BindingChanged naming the first part that moved, old and new.
    """
    now = bind(experiment)
    for one in begun(found):
        before = one.preflight.binding
        if before.binding_sha256 != now.binding_sha256:
            first = next(iter(moved(before, now)), None)
            raise BindingChanged(
                f"{one.folder} ran under another binding" + (f" ({first.part} moved)" if first else ""),
                got=first.old if first else before.binding_sha256,
                need=first.new if first else now.binding_sha256,
                do="decide under the code that was bound: check out the commit of the phases",
            )


def _undecided(experiment: Experiment, history: tuple[PhaseOutcome, ...]) -> dict[str, Any]:
    due = next_phase(experiment, history)
    return {
        "schema_version": 1,
        "experiment_id": experiment.experiment_id,
        "pass": None,
        "selected": None,
        "state": due.state,
        "reason": due.reason,
        "next": due.key.model_dump(mode="json") if due.key else None,
        "history": [one.model_dump(mode="json") for one in history],
    }
