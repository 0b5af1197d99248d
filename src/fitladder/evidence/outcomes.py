"""Outcomes of verified bundles and their audits for the ladder, one a phase."""

from collections.abc import Sequence

from fitladder.errors import LineageError
from fitladder.ladder.outcome import interrupted, outcome_of
from fitladder.records.audit import TerminationAudit
from fitladder.records.experiment import Experiment
from fitladder.records.layout import RECEIPT
from fitladder.records.outcome import PhaseOutcome
from fitladder.store.verify_root import VerifiedRoot

__all__ = ["outcomes"]


def outcomes(
    found: VerifiedRoot, audits: Sequence[TerminationAudit], experiment: Experiment
) -> tuple[PhaseOutcome, ...]:
    """The history of a ladder: one outcome a bundle with its audit, one an interrupted phase.

    Raises LineageError where an audit is missing, and what `outcome_of` raises.
    """
    by_key = {audit.bundle: audit for audit in audits}
    if len(by_key) != len(audits) or by_key.keys() != {one.key for one in found.bundles}:
        raise LineageError(
            f"audits of {experiment.experiment_id}",
            got=", ".join(map(str, by_key)) or "none",
            need=", ".join(str(one.key) for one in found.bundles) or "none",
            do=f"run `dvc repro audit@{experiment.experiment_id}`",
        )
    complete = [
        outcome_of(
            experiment,
            by_key[one.key],
            receipt_sha256=one.files[RECEIPT].sha256,
            preemptions=one.receipt.counters["preemptions"],
        )
        for one in found.bundles
    ]
    return (*complete, *(interrupted(one.key) for one in found.interrupted))
