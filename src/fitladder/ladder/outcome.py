"""What became of one phase? A receipt with its audited counts, or a preflight that nothing followed.

Takes an audit as plain data and judges it again by integers against the registered thresholds: an
`adequate` that its own counts do not bear out is refused. Knows no bundle and no ids.
"""

from collections.abc import Mapping
from typing import Any

from fitladder.canonical import canonical_sha256
from fitladder.errors import LadderRefused
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Experiment
from fitladder.records.outcome import PhaseOutcome

__all__ = ["interrupted", "outcome_of"]

COUNTS = ("samples", "unresolved_cap_contacts", "answer_limit_contacts", "periodic_loop_contacts")


def interrupted(key: BundleKey) -> PhaseOutcome:
    """The outcome of a phase that left a preflight and no receipt."""
    return PhaseOutcome(key=key, state="preflight_only")


def outcome_of(
    experiment: Experiment, audit: Mapping[str, Any], *, receipt_sha256: str, preemptions: int
) -> PhaseOutcome:
    """The outcome of a complete bundle: its recomputed audit as plain data, and its receipt.

    Raises LadderRefused where the audit belongs elsewhere, lacks a count, or contradicts its own counts.
    """
    try:
        key = BundleKey.model_validate(dict(audit["bundle"]))
        expected, stated = audit["expected_samples"], audit["adequate"]
        counts = {name: audit[name] for name in COUNTS}
    except (KeyError, TypeError, ValueError) as error:
        raise LadderRefused(
            "an audit without its counts", got=repr(error)[:120], do="make it again: `dvc repro`"
        ) from error
    if any(type(count) is not int or count < 0 for count in (expected, *counts.values())):
        raise LadderRefused(f"audit of {key}: counts", got=counts, need="integers from 0")
    need = experiment.records_per_arm * experiment.k(key.phase)
    if key.experiment_id != experiment.experiment_id or expected != need:
        raise LadderRefused(f"audit of {key} for {experiment.experiment_id}", got=expected, need=need)
    adequate = _is_adequate(experiment, expected, counts)
    if stated is not adequate:
        raise LadderRefused(f"audit of {key} contradicts its counts", got=f"adequate {stated}", need=adequate)
    return PhaseOutcome(
        key=key,
        state="complete",
        receipt_sha256=receipt_sha256,
        audit_sha256=canonical_sha256(dict(audit)),
        expected_samples=expected,
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
