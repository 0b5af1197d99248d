"""Outcome of one phase for the ladder: a receipt with its audited counts, or a mere preflight.

The counts are judged again by integers against the registered thresholds: an `adequate` that its own counts
do not bear out is refused. Knows no bundle and no ids.
"""

from collections.abc import Mapping

from fitladder.canonical import canonical_sha256
from fitladder.errors import LadderRefused
from fitladder.records.audit import TerminationAudit
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Experiment
from fitladder.records.outcome import PhaseOutcome

__all__ = ["interrupted", "judged_outcome", "outcome_of"]


def interrupted(key: BundleKey) -> PhaseOutcome:
    """The outcome of a phase that left a preflight and no receipt."""
    return PhaseOutcome(key=key, state="preflight_only")


def outcome_of(
    experiment: Experiment, audit: TerminationAudit, *, receipt_sha256: str, preemptions: int
) -> PhaseOutcome:
    """The outcome of a complete bundle: its recomputed audit, the digest of its receipt, its preemptions.

    Raises LadderRefused as `judged_outcome`.
    """
    return judged_outcome(
        experiment,
        audit.bundle,
        expected_samples=audit.expected_samples,
        samples=audit.samples,
        unresolved_cap_contacts=audit.unresolved_cap_contacts,
        answer_limit_contacts=audit.answer_limit_contacts,
        periodic_loop_contacts=audit.periodic_loop_contacts,
        adequate=audit.adequate,
        preemptions=preemptions,
        receipt_sha256=receipt_sha256,
        audit_sha256=canonical_sha256(audit),
    )


def judged_outcome(
    experiment: Experiment,
    key: BundleKey,
    *,
    expected_samples: int,
    samples: int,
    unresolved_cap_contacts: int,
    answer_limit_contacts: int,
    periodic_loop_contacts: int,
    adequate: bool,
    preemptions: int,
    receipt_sha256: str,
    audit_sha256: str,
) -> PhaseOutcome:
    """The outcome of a complete phase from its counts of samples; `adequate` is what its audit states.

    Raises LadderRefused where the counts are no integers from 0, belong to another experiment or phase size,
    or contradict `adequate`.
    """
    counts = {
        "samples": samples,
        "unresolved_cap_contacts": unresolved_cap_contacts,
        "answer_limit_contacts": answer_limit_contacts,
        "periodic_loop_contacts": periodic_loop_contacts,
    }
    if any(type(count) is not int or count < 0 for count in (expected_samples, *counts.values())):
        raise LadderRefused(f"audit of {key}: counts", got=counts, need="integers from 0")
    need = experiment.records_per_arm * experiment.k(key.phase)
    if key.experiment_id != experiment.experiment_id or expected_samples != need:
        raise LadderRefused(f"audit of {key} for {experiment.experiment_id}", got=expected_samples, need=need)
    borne_out = _is_adequate(experiment, expected_samples, counts)
    if adequate is not borne_out:
        raise LadderRefused(
            f"audit of {key} contradicts its counts", got=f"adequate {adequate}", need=borne_out
        )
    return PhaseOutcome(
        key=key,
        state="complete",
        receipt_sha256=receipt_sha256,
        audit_sha256=audit_sha256,
        expected_samples=expected_samples,
        adequate=adequate,
        preemptions=preemptions,
        **counts,
    )


def _is_adequate(experiment: Experiment, expected: int, counts: Mapping[str, int]) -> bool:
    return counts["samples"] == expected and experiment.thresholds.are_kept(
        unresolved=counts["unresolved_cap_contacts"],
        answer_limit=counts["answer_limit_contacts"],
        loops=counts["periodic_loop_contacts"],
        samples=expected,
    )
