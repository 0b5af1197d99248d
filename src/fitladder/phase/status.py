"""Status of a registered experiment by what the disk proves.

The root is read where it is here, else the carried copy under data/bundles, else the registered history.
What Prefect says decides nothing here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fitladder.canonical import canonical_sha256
from fitladder.errors import BindingChanged, RootRefused
from fitladder.evidence.checkout_bundles import load_bundles
from fitladder.evidence.load import check_one_binding, evidence_of, load_evidence
from fitladder.ladder.authorise import NextPhase, next_phase
from fitladder.ladder.outcome import interrupted, judged_outcome
from fitladder.ladder.walk import walk
from fitladder.records.binding import Binding
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import PHASES, Experiment
from fitladder.records.history import RecordedPhase, load_history
from fitladder.records.outcome import PhaseOutcome
from fitladder.records.preflight import Preflight
from fitladder.records.registry import Registry
from fitladder.registry.binding import bind
from fitladder.store.verify_bundle import VerifiedBundle, VerifiedPreflight
from fitladder.workspace import Workspace

__all__ = ["ExperimentStatus", "PhaseStatus", "experiment_status"]


@dataclass(frozen=True)
class PhaseStatus:
    """One phase at one rung; the digests are None where nothing stands."""

    key: BundleKey
    state: Literal["not_run", "preflight_only", "complete"]
    adequate: bool | None
    receipt_sha256: str | None
    go_sha256: str | None
    counts: dict[str, int]
    attempts: int = 0  # how often it was begun, as far as this machine can see


@dataclass(frozen=True)
class ExperimentStatus:
    """What `fitladder status` says of one experiment. `source`: where the proof was read."""

    experiment: Experiment
    source: Literal["root", "data/bundles", "registered history", "nothing yet"]
    rungs: Mapping[int, str]
    phases: tuple[PhaseStatus, ...]
    next: NextPhase
    barred: str | None = None  # why nothing may be asked for here, whatever is due

    @property
    def next_command(self) -> str | None:
        """The command that asks for what is due; None where nothing may be asked for."""
        key = self.next.key or self.next.resumable
        if key is None or self.barred is not None:
            return None
        return (
            f"fitladder launch {key.experiment_id} --phase {key.phase} --budget {key.thinking_budget_tokens}"
            + (" --resume" if self.next.resumable else "")
        )


def experiment_status(workspace: Workspace, registry: Registry, experiment_id: str) -> ExperimentStatus:
    """Verify and audit what is here.

    Raises as verification does: a broken bundle has no status. RootRefused where the variable names a root
    that may not be used (another's, a link, relative), BindingChanged where the bundles are foreign to the
    protocol or generation code that is here.
    """
    experiment = registry.experiment(experiment_id)
    recorded = load_history(workspace.data, experiment_id)
    if recorded is not None:
        history = [_recorded_outcome(experiment, phase) for phase in recorded.phases]
        return _status(experiment, "registered history", history, {})
    try:
        evidence = load_evidence(workspace, experiment_id)
    except RootRefused:
        if workspace.environment.get(experiment.artifacts.environment_override):
            raise  # one is named, and may not be used
        evidence = None  # no root is named on this machine: a reader's laptop
    if evidence is not None and evidence.begun:
        gos = _gos((*evidence.bundles, *evidence.preflights))
        status = _status(experiment, "root", evidence.history, gos)
        return replace(status, barred=_moved(evidence.binding, evidence.begun))
    found = load_bundles(workspace.data, experiment)
    if found is None:
        return _status(experiment, "nothing yet", (), {})
    carried = evidence_of(registry, bind(experiment), found)
    gos = _gos((*carried.bundles, *carried.preflights))
    status = _status(experiment, "data/bundles", carried.history, gos)
    return replace(status, barred=_moved(carried.binding, carried.begun))


def _moved(binding: Binding, begun: Sequence[Preflight]) -> str | None:
    try:
        check_one_binding(binding, begun)
    except BindingChanged as refusal:
        return str(refusal)
    return None


def _gos(begun: Sequence[VerifiedBundle | VerifiedPreflight]) -> dict[BundleKey, tuple[str, int]]:
    """GO and number of the newest attempt at each phase."""
    ordered = sorted(begun, key=lambda one: one.preflight.sequence)
    return {one.key: (one.preflight.go_sha256, one.preflight.attempt) for one in ordered}


def _recorded_outcome(experiment: Experiment, phase: RecordedPhase) -> PhaseOutcome:
    """A registered phase as the ladder knows it: its recorded counts judged again, not its verdict."""
    key = BundleKey(
        experiment_id=experiment.experiment_id,
        thinking_budget_tokens=phase.thinking_budget_tokens,
        phase=phase.phase,
    )
    found = phase.termination
    if found is None:
        return interrupted(key)
    return judged_outcome(
        experiment,
        key,
        expected_samples=phase.records * phase.k,
        samples=found.samples,
        unresolved_cap_contacts=found.unresolved,
        answer_limit_contacts=found.answer_limit_contacts,
        periodic_loop_contacts=found.loops,
        adequate=experiment.thresholds.are_kept(
            unresolved=found.unresolved,
            answer_limit=found.answer_limit_contacts,
            loops=found.loops,
            samples=found.samples,
        ),
        preemptions=0,
        receipt_sha256=phase.files["receipt"].sha256,
        audit_sha256=phase.audit_sha256 or canonical_sha256(found),
    )


def _status(
    experiment: Experiment,
    source: Literal["root", "data/bundles", "registered history", "nothing yet"],
    history: Sequence[PhaseOutcome],
    gos: dict[BundleKey, tuple[str, int]],
) -> ExperimentStatus:
    known = {outcome.key: outcome for outcome in history}
    phases = [
        _phase(
            BundleKey(
                experiment_id=experiment.experiment_id,
                thinking_budget_tokens=rung.thinking_budget_tokens,
                phase=phase,
            ),
            known,
            gos,
        )
        for rung in experiment.rungs
        for phase in PHASES
    ]
    rungs = dict(walk(experiment, history).rungs)
    return ExperimentStatus(experiment, source, rungs, tuple(phases), next_phase(experiment, history))


def _phase(
    key: BundleKey, known: dict[BundleKey, PhaseOutcome], gos: dict[BundleKey, tuple[str, int]]
) -> PhaseStatus:
    outcome = known.get(key)
    if outcome is None:
        return PhaseStatus(key, "not_run", None, None, None, {})
    counts = {
        name: value
        for name in (
            "samples",
            "unresolved_cap_contacts",
            "answer_limit_contacts",
            "periodic_loop_contacts",
            "preemptions",
        )
        if (value := getattr(outcome, name)) is not None and (name != "preemptions" or key in gos)
    }
    go, attempts = gos.get(key, (None, 1))
    return PhaseStatus(key, outcome.state, outcome.adequate, outcome.receipt_sha256, go, counts, attempts)
