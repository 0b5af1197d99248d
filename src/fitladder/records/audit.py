"""Termination audit of one bundle: the frozen models of its file. Counts are integers until printed.

Names of counts are those of the published audits. Rates and their intervals are decimal text, for reading;
decisions are made from the counts.
"""

import math
from typing import Annotated, Literal

from pydantic import Field

from fitladder.canonical import Rate
from fitladder.frozen import Frozen, Sha256, Size
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Arm
from fitladder.records.settings import LoopRule, Thresholds

__all__ = [
    "AuditedRate",
    "ContactClass",
    "Ending",
    "EqualSamples",
    "SampleAudit",
    "TerminationAudit",
    "audit_rate",
]

Decimals = Annotated[str, Field(pattern=r"^\d\.\d{6}$")]
Ending = Literal["natural_close", "closed_at_edge", "forced_close", "eos_inside_thinking"]
ContactClass = Literal["no_contact", "periodic_loop", "unresolved"]
Z95 = 1.959963984540054  # two-sided 95 % of the normal distribution


class AuditedRate(Frozen):
    """One rate and its threshold. No rate and no interval where there is no sample."""

    contacts: Size
    samples: Size
    rate: Decimals | None
    wilson95_low: Decimals | None
    wilson95_high: Decimals | None
    must_be: Literal["below", "at_most"]
    threshold: str
    within: bool


class SampleAudit(Frozen):
    """One sample. `period_tokens` only for a loop; the other lag fields also for a near miss.

    `best_lag_tokens` is the lag that matched best, `matched_tokens` of `compared_tokens` equal. A loop began
    at `onset_token` (0 is the first thinking id); everything from there on is `tokens_after_onset`.
    """

    record_id: str
    sample_index: Size
    ending: Ending
    stage1_finish_reason: str
    thinking_tokens: Size
    boundary_contact: bool
    verdict: ContactClass
    period_tokens: Size | None
    best_lag_tokens: Size | None
    matched_tokens: Size | None
    compared_tokens: Size | None
    onset_token: Size | None
    tokens_after_onset: Size | None
    answer_limit_contact: bool


class EqualSamples(Frozen):
    """Samples whose sampled ids are the same, by SHA-256 over the ids as little-endian int32."""

    token_ids_sha256: Sha256
    tokens: Size
    samples: tuple[str, ...]


class TerminationAudit(Frozen):
    """The registered termination audit of one bundle, content-blind."""

    schema_version: Literal[1]
    bundle: BundleKey
    arm: Arm
    k: Size
    max_num_seqs: Size
    expected_samples: Size
    samples: Size
    complete: bool
    missing: tuple[str, ...]
    adequate: bool
    stage1_length_finishes: Size
    forced_interventions: Size
    reasoning_boundary_contacts: Size
    closed_at_edge_contacts: Size
    eos_inside_thinking: Size
    answer_restarts_after_natural_close: Size
    unresolved_cap_contacts: Size
    periodic_loop_contacts: Size
    period_tokens: tuple[Size, ...]
    answer_limit_contacts: Size
    thinking_tokens: Size
    tokens_after_onset: Size
    unresolved_cap_contact_rate: AuditedRate
    periodic_loop_rate: AuditedRate
    answer_limit_contact_rate: AuditedRate
    answer_max_tokens: Size
    loop_rule: LoopRule
    thresholds: Thresholds
    largest_period_searched_tokens: Size
    equal_samples: tuple[EqualSamples, ...]
    warnings: tuple[str, ...]
    selection_uses_decoded_or_scored_content: Literal[False]
    selection_uses_token_identity_for_periodicity: Literal[True]
    rows: tuple[SampleAudit, ...]


def audit_rate(
    contacts: int, samples: int, must_be: Literal["below", "at_most"], threshold: Rate
) -> AuditedRate:
    """The rate, its 95 % Wilson interval, and whether it keeps to its threshold by integers."""
    compare = threshold.share_is_below if must_be == "below" else threshold.share_is_at_most
    low, high = _wilson95(contacts, samples) if samples else (None, None)
    return AuditedRate(
        contacts=contacts,
        samples=samples,
        rate=f"{contacts / samples:.6f}" if samples else None,
        wilson95_low=low,
        wilson95_high=high,
        must_be=must_be,
        threshold=str(threshold),
        within=compare(contacts, samples),
    )


def _wilson95(count: int, total: int) -> tuple[str, str]:
    share, z2 = count / total, Z95 * Z95
    centre = share + z2 / (2 * total)
    spread = Z95 * math.sqrt(share * (1 - share) / total + z2 / (4 * total * total))
    low, high = ((centre + sign * spread) / (1 + z2 / total) for sign in (-1, 1))
    return f"{max(0.0, low):.6f}", f"{min(1.0, high):.6f}"
