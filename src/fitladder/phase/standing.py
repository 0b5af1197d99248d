"""What does the disk prove about an experiment, right now? Every receipt re-verified, every audit recomputed.

Nothing is cached and nothing is taken from Prefect or from an audit file: whoever asks gets the same answer
from the same bytes. It writes nothing.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from fitladder.audit.columns import TerminationColumns
from fitladder.audit.termination import TerminationAudit, audit_termination
from fitladder.bundles.inventory import inspect_root
from fitladder.bundles.layout import OWNER
from fitladder.bundles.receipt import Receipt
from fitladder.bundles.root import resolve_root
from fitladder.bundles.schemas import Preflight
from fitladder.bundles.verify import VerifiedBundle, VerifiedPreflight
from fitladder.engine.base import EngineFacts, RuntimeFacts
from fitladder.errors import BindingChanged, LadderRefused
from fitladder.phase.house import House
from fitladder.protocol.binding import Binding, bind
from fitladder.protocol.experiment import PHASES, Experiment
from fitladder.protocol.key import BundleKey
from fitladder.protocol.registry import Registry, load_registry

__all__ = ["Standing", "audit_bundle", "survey"]

ENGINE_IDENTITY = (
    "engine",
    "engine_version",
    "device",
    "device_name",
    "dtype",
    "block_size_tokens",
    "capture_resolved",
    "graph_mode",
    "decode_graph_mode",
)
RUNTIME_IDENTITY = (
    "python",
    "platform",
    "packages",
    "engine_lock_sha256",
    "device_driver",
    "cuda",
    "environment",
)


@dataclass(frozen=True)
class Standing:
    """One experiment as params.yaml and its root say it is; `audits` stand in the order of `bundles`."""

    registry: Registry
    experiment: Experiment
    binding: Binding
    root: Path
    bundles: tuple[VerifiedBundle, ...]
    preflights: tuple[VerifiedPreflight, ...]  # those that no bundle came of
    audits: tuple[TerminationAudit, ...]

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

    def check_open(self, key: BundleKey) -> None:
        """This phase, and no other, may be begun now. Raises LadderRefused."""
        need = self.next_key()
        begun = [preflight.key for preflight in self.begun]
        if key in begun or need != key or self.preflights or self.experiment.state != "open":
            raise LadderRefused(f"{key} is not authorised", got=key, need=need or "nothing more")

    def next_key(self) -> BundleKey | None:
        """PROVISIONAL"""
        name = self.experiment.experiment_id
        outcome = {audit.bundle: audit.adequate for audit in self.audits}
        for rung in self.experiment.rungs:
            for phase in PHASES:
                key = BundleKey(
                    experiment_id=name, thinking_budget_tokens=rung.thinking_budget_tokens, phase=phase
                )
                if key not in outcome:
                    return key
                if not outcome[key]:
                    break
            else:
                return None
        return None

    def check_same_runtime(self, key: BundleKey, facts: EngineFacts, runtime: RuntimeFacts) -> None:
        """Engine and environment are those of the rung's earlier phases. Raises BindingChanged."""
        for bundle in self.bundles:
            if bundle.key.thinking_budget_tokens != key.thinking_budget_tokens:
                continue
            before = bundle.preflight
            pairs = [(name, getattr(before.engine, name), getattr(facts, name)) for name in ENGINE_IDENTITY]
            pairs += [
                (name, getattr(before.runtime, name), getattr(runtime, name)) for name in RUNTIME_IDENTITY
            ]
            for name, old, new in pairs:
                if old != new:
                    raise BindingChanged(
                        f"{key}: {name} drifted within the rung since {bundle.key.phase}",
                        got=new,
                        need=old,
                        do="run the rung's phases on one host with one engine environment",
                    )


def audit_bundle(bundle: VerifiedBundle, experiment: Experiment) -> TerminationAudit:
    """The termination audit of a verified bundle, from the bytes that were verified."""
    records = [prompt.record_id for prompt in bundle.preflight.prompts]
    return audit_termination(_columns(bundle), experiment, bundle.key, records)


def _columns(bundle: VerifiedBundle) -> TerminationColumns:
    table = bundle.columns(COLUMNS_READ)
    ids, offsets = table.tokens("stage1_token_ids")
    _, answers = table.tokens("stage2_token_ids")
    return TerminationColumns(
        record_ids=[str(text) for text in table.texts("record_id")],
        sample_indices=table.integers("sample_index"),
        stage1_token_ids=ids,
        stage1_offsets=offsets,
        thinking_tokens=table.integers("thinking_tokens"),
        stage1_finish_reasons=[str(text) for text in table.texts("stage1_finish_reason")],
        natural_close=table.flags("natural_close"),
        eos_inside_thinking=table.flags("eos_inside_thinking"),
        forced_close=table.flags("forced_close"),
        answer_restart=table.flags("answer_restart"),
        stage2_tokens=answers[1:] - answers[:-1],
        stage2_finish_reasons=table.texts("stage2_finish_reason"),
    )


COLUMNS_READ = (
    "record_id",
    "sample_index",
    "stage1_token_ids",
    "thinking_tokens",
    "stage1_finish_reason",
    "natural_close",
    "eos_inside_thinking",
    "forced_close",
    "answer_restart",
    "stage2_token_ids",
    "stage2_finish_reason",
)


def survey(house: House, experiment_id: str) -> Standing:
    """Read everything; a root that nobody claimed yet holds nothing. Raises at the first bad byte."""
    registry = load_registry(house.params)
    experiment = registry.experiment(experiment_id)
    binding = bind(experiment)
    root = resolve_root(experiment, house.environment, others=registry.experiments.values())
    if not os.path.lexists(root / OWNER):
        return Standing(registry, experiment, binding, root, (), (), ())
    found = inspect_root(root, experiment_id, binding)
    audits = tuple(audit_bundle(bundle, experiment) for bundle in found.bundles)
    return Standing(registry, experiment, binding, root, found.bundles, found.preflights, audits)
