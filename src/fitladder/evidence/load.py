"""Evidence of an experiment: its registration and its verified root, with every audit recomputed.

Loaded at a border (a GO is asked for or answered, the root was locked for an engine) and passed on from
there; what takes `Evidence` verifies nothing again. Nothing is taken from Prefect or from an audit file, and
nothing is kept from one step to the next.
"""

import functools
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from fitladder.errors import RootRefused
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
from fitladder.store.held_root import HeldRoot
from fitladder.store.root import resolve_root
from fitladder.store.verify_bundle import VerifiedBundle, VerifiedPreflight
from fitladder.store.verify_root import VerifiedRoot, inspect_root
from fitladder.store.write_bundle import reconciled_root
from fitladder.workspace import Workspace

__all__ = [
    "Evidence",
    "check_one_binding",
    "evidence_of",
    "evidence_once",
    "load_evidence",
    "load_held_evidence",
    "registered_root",
]


@dataclass(frozen=True)
class Evidence:
    """One experiment as params.yaml and its verified root say it is; `audits` are in the order of `bundles`.

    A function that takes it relies on verified bytes; one that needs no verified bytes takes records.
    """

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
        """Check that this phase, and no other, may be begun now; `resume`: after an interruption.

        Raises LadderRefused, and BindingChanged where decision code moved since an earlier phase, as the
        selection would.
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


def registered_root(workspace: Workspace, experiment_id: str) -> Path:
    """The artifact root that registry and environment name; nothing in it is read.

    Raises RegistrationError, and RootRefused naming path and reason.
    """
    registry = load_registry(workspace.params)
    return _root_of(workspace, registry, experiment_id)


def load_evidence(workspace: Workspace, experiment_id: str) -> Evidence:
    """Read and verify everything; a root that nobody claimed yet holds nothing.

    Raises RegistrationError, RootRefused, BindingChanged and the kinds of BundleError at the first bad byte.
    """
    registry = load_registry(workspace.params)
    experiment = registry.experiment(experiment_id)
    binding = bind(experiment)
    root = _root_of(workspace, registry, experiment_id)
    if not os.path.lexists(root / OWNER):
        return Evidence(registry, experiment, binding, root, (), (), (), ())
    return evidence_of(registry, binding, inspect_root(root, experiment_id, binding))


def evidence_once(workspace: Workspace, experiment_id: str) -> Callable[[], Evidence]:
    """A loader for one step of a process: its first call is `load_evidence`, later ones give that value.

    A call that raised is made again.
    """
    return functools.cache(functools.partial(load_evidence, workspace, experiment_id))


def load_held_evidence(workspace: Workspace, held: HeldRoot) -> tuple[Evidence, VerifiedRoot]:
    """Registry and root, both read again under the root's lock, in one pass over the root.

    The catalog is reconciled first, so that `VerifiedRoot.catalog` is the one on disk. Raises as
    `load_evidence`, and RootRefused where params.yaml names another root than the one that is held.
    """
    registry = load_registry(workspace.params)
    binding = bind(registry.experiment(held.experiment_id))
    root = _root_of(workspace, registry, held.experiment_id)
    if root != held.path:
        raise RootRefused(f"the root of {held.experiment_id} moved meanwhile", got=root, need=held.path)
    found = reconciled_root(held, binding)
    return evidence_of(registry, binding, found), found


def evidence_of(registry: Registry, binding: Binding, found: VerifiedRoot) -> Evidence:
    """Evidence of a root, or of its copy, that was verified under `binding`: each bundle is audited once.

    Raises BundleError on rows that are not their bundle's, LadderRefused where the ladder does not add up.
    """
    experiment = registry.experiment(binding.experiment_id)
    audits = tuple(audit_bundle(bundle, experiment) for bundle in found.bundles)
    history = outcomes(found, audits, experiment)
    return Evidence(
        registry, experiment, binding, found.root, found.bundles, found.preflights, audits, history
    )


def _root_of(workspace: Workspace, registry: Registry, experiment_id: str) -> Path:
    experiment = registry.experiment(experiment_id)
    return resolve_root(experiment, workspace.environment, others=registry.experiments.values())
