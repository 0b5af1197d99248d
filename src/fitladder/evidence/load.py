"""What does the disk prove about an experiment, right now? Every receipt re-verified, every audit recomputed.

Nothing is cached and nothing is taken from Prefect or from an audit file: whoever asks gets the same answer
from the same bytes. It writes nothing.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fitladder.evidence.audit_bundle import audit_bundle
from fitladder.evidence.outcomes import outcomes
from fitladder.ladder.authorise import NextPhase, check_authorised, next_phase
from fitladder.ladder.drift import check_no_drift, rung_identity
from fitladder.records.audit import TerminationAudit
from fitladder.records.binding import Binding
from fitladder.records.bundle_key import BundleKey
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts
from fitladder.records.experiment import Experiment
from fitladder.records.layout import OWNER
from fitladder.records.outcome import PhaseOutcome
from fitladder.records.preflight import Preflight
from fitladder.records.receipt import Receipt
from fitladder.records.registry import Registry
from fitladder.registry.binding import bind, check_whole
from fitladder.registry.load import load_registry
from fitladder.store.root import resolve_root
from fitladder.store.verify_bundle import VerifiedBundle, VerifiedPreflight
from fitladder.store.verify_root import inspect_root
from fitladder.workspace import Workspace

__all__ = ["Evidence", "check_one_binding", "load_evidence"]


@dataclass(frozen=True)
class Evidence:
    """One experiment as params.yaml and its root say it is; `audits` stand in the order of `bundles`."""

    registry: Registry
    experiment: Experiment
    binding: Binding
    root: Path
    bundles: tuple[VerifiedBundle, ...]
    preflights: tuple[VerifiedPreflight, ...]  # those that no bundle came of
    audits: tuple[TerminationAudit, ...]
    history: tuple[PhaseOutcome, ...]

    @property
    def begun(self) -> tuple[Preflight, ...]:
        """Every preflight, in order of sequence."""
        found = [one.preflight for one in self.bundles] + [one.preflight for one in self.preflights]
        return tuple(sorted(found, key=lambda preflight: preflight.sequence))

    @property
    def used_go_sha256s(self) -> frozenset[str]:
        """Every GO that some preflight names."""
        return frozenset(preflight.go_sha256 for preflight in self.begun)

    def receipt(self, key: BundleKey) -> Receipt | None:
        """The verified receipt of this phase, None where it has none."""
        return next((bundle.receipt for bundle in self.bundles if bundle.key == key), None)

    @property
    def next(self) -> NextPhase:
        """What the ladder authorises now, with its reason."""
        return next_phase(self.experiment, self.history)

    def interrupted_attempts(self, key: BundleKey) -> tuple[str, ...]:
        """SHA-256 of the preflight of every attempt at this phase that no bundle came of, in order."""
        return tuple(one.file.sha256 for one in self.preflights if one.key == key)

    def resumable_sha256(self, key: BundleKey) -> str | None:
        """The preflight that another attempt at this phase would follow; None where none is to be resumed."""
        return self.interrupted_attempts(key)[-1] if self.next.resumable == key else None

    def check_open(self, key: BundleKey, *, resume: bool = False) -> None:
        """This phase, and no other, may be begun now, or begun again. Raises LadderRefused.

        Raises BindingChanged where decision code moved since an earlier phase: the selection would refuse.
        """
        check_authorised(self.experiment, self.history, key, resume=resume)
        self.check_one_binding()

    def check_one_binding(self) -> None:
        """Every phase that was begun has today's binding, decision code included. Raises BindingChanged."""
        check_one_binding(self.binding, self.begun)

    def check_same_runtime(self, key: BundleKey, facts: EngineFacts, runtime: RuntimeFacts) -> None:
        """Engine and environment are those of the rung's earlier phases. Raises BindingChanged."""
        live = rung_identity(facts, runtime)
        for preflight in self.begun:
            if preflight.key.thinking_budget_tokens == key.thinking_budget_tokens:
                recorded = rung_identity(preflight.engine, preflight.runtime)
                check_no_drift(recorded, live, where=f"{key} after {preflight.key.phase}")


def check_one_binding(binding: Binding, begun: Iterable[Preflight]) -> None:
    """`Evidence.check_one_binding` of any preflights. Raises BindingChanged naming the first that differs."""
    for preflight in begun:
        key = preflight.key
        check_whole(preflight.binding, binding, where=f"{key.phase}@{key.thinking_budget_tokens}")


def load_evidence(workspace: Workspace, experiment_id: str) -> Evidence:
    """Read everything; a root that nobody claimed yet holds nothing. Raises at the first bad byte."""
    registry = load_registry(workspace.params)
    experiment = registry.experiment(experiment_id)
    binding = bind(experiment)
    root = resolve_root(experiment, workspace.environment, others=registry.experiments.values())
    if not os.path.lexists(root / OWNER):
        return Evidence(registry, experiment, binding, root, (), (), (), ())
    found = inspect_root(root, experiment_id, binding)
    audits = tuple(audit_bundle(bundle, experiment) for bundle in found.bundles)
    history = outcomes(found, audits, experiment)
    return Evidence(registry, experiment, binding, root, found.bundles, found.preflights, audits, history)
