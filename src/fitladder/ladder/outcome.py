"""What became of one phase? A receipt with its audited counts, or a preflight that nothing followed.

Takes an audit as plain data and judges it again by integers against the registered thresholds: an
`adequate` that its own counts do not bear out is refused. Knows no bundle and no ids.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from fitladder.canonical import canonical_sha256
from fitladder.errors import LadderRefused
from fitladder.protocol.experiment import Experiment
from fitladder.protocol.key import BundleKey
from fitladder.protocol.settings import Frozen, Sha256

__all__ = ["PhaseOutcome", "interrupted", "outcome_of"]

Size = Annotated[int, Field(ge=0)]
COUNTS = ("samples", "unresolved_cap_contacts", "answer_limit_contacts", "periodic_loop_contacts")


class PhaseOutcome(Frozen):
    """One phase of the history. Everything but key and state is None where only a preflight stands."""

    key: BundleKey
    state: Literal["preflight_only", "complete"]
    receipt_sha256: Sha256 | None = None
    expected_samples: Size | None = None
    samples: Size | None = None
    unresolved_cap_contacts: Size | None = None
    answer_limit_contacts: Size | None = None
    periodic_loop_contacts: Size | None = None
    adequate: bool | None = None
    preemptions: Size | None = None
    audit_sha256: Sha256 | None = None  # of the whole audit; last, so that a differing count is named first

    @model_validator(mode="after")
    def _whole(self) -> Self:
        known = [name for name in PhaseOutcome.model_fields if getattr(self, name) is not None]
        need = 2 if self.state == "preflight_only" else len(PhaseOutcome.model_fields)
        if len(known) != need:
            raise ValueError(f"{self.key}: a {self.state} phase with only {', '.join(known)}")
        return self

    @property
    def incomplete(self) -> bool:
        """A receipt over fewer samples than the phase has: no evidence, and no rejection either."""
        return self.samples != self.expected_samples


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
