"""Outcome of one phase as the ladder sees it: a receipt with audited counts, or a preflight alone."""

from typing import Literal, Self

from pydantic import model_validator

from fitladder.frozen import Frozen, Sha256, Size
from fitladder.records.bundle_key import BundleKey

__all__ = ["PhaseOutcome", "Size"]


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
