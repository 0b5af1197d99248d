"""What the analyser is told of the ladder: a verified, selected matrix, or why there is none.

Passes one (receipts and identities) and two (termination metrics) happen elsewhere; this is their
result as plain data. Only token ids come along, never text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fitladder.errors import BundleError

__all__ = ["AnswerRow", "NothingSelected", "SelectedSamples", "check_rows"]


@dataclass(frozen=True)
class AnswerRow:
    """One sample's answer region: the ids of stage 2, or those behind a natural close; () for no answer."""

    record_id: str
    sample_index: int
    answer_token_ids: tuple[int, ...]


@dataclass(frozen=True)
class SelectedSamples:
    """A selected K = samples_per_record matrix of both arms, re-verified in passes one and two.

    `evidence_sha256` names what those passes verified (receipts and recomputed metrics of the whole ladder).
    """

    experiment_id: str
    thinking_budget_tokens: int
    samples_per_record: int
    evidence_sha256: str
    rows: tuple[AnswerRow, ...]


@dataclass(frozen=True)
class NothingSelected:
    """Nothing may be decoded, for this reason."""

    reason: str


def check_rows(history: SelectedSamples, record_ids: Sequence[str]) -> dict[str, tuple[AnswerRow, ...]]:
    """Rows by record, in sample order. Raises BundleError unless they are exactly samples 0..K-1 of exactly
    these records, each once, even where a repeated row is identical."""
    found: dict[tuple[str, int], AnswerRow] = {}
    for row in history.rows:
        key = (row.record_id, row.sample_index)
        if key in found:
            raise BundleError(
                "a sample twice", got=f"{row.record_id!a} sample {row.sample_index}", need="each once"
            )
        found[key] = row
    expected = {(name, index) for name in record_ids for index in range(history.samples_per_record)}
    if not expected:
        raise BundleError("no samples to analyse", got="an empty matrix")
    for what, odd in (("missing", expected - found.keys()), ("not expected", found.keys() - expected)):
        if odd:
            name, index = min(odd)
            raise BundleError(f"{len(odd)} samples are {what}", got=f"{name!a} sample {index} first")
    return {
        name: tuple(found[name, index] for index in range(history.samples_per_record)) for name in record_ids
    }
