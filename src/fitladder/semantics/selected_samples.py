"""Input of the semantic analysis: the selected samples of an experiment, verified, or why there are none.

Receipts and termination audits were verified before (stages/semantics.py); here are token ids, never text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fitladder.errors import BundleError

__all__ = ["AnswerRow", "NothingSelected", "SelectedSamples", "check_rows"]


@dataclass(frozen=True)
class AnswerRow:
    """Answer ids of one sample.

    Those of stage 2 where it ran, else those after the close marker in stage 1; () where there is no answer.
    """

    record_id: str
    sample_index: int
    answer_token_ids: tuple[int, ...]


@dataclass(frozen=True)
class SelectedSamples:
    """All samples of both arms at the selected budget, K = samples_per_record.

    `evidence_sha256` is over what was verified: receipts and recomputed audits of the whole ladder.
    """

    experiment_id: str
    thinking_budget_tokens: int
    samples_per_record: int
    evidence_sha256: str
    rows: tuple[AnswerRow, ...]


@dataclass(frozen=True)
class NothingSelected:
    """The ladder selected nothing, so that nothing may be decoded; `reason` says why."""

    reason: str


def check_rows(selected: SelectedSamples, record_ids: Sequence[str]) -> dict[str, tuple[AnswerRow, ...]]:
    """Rows by record id, in sample order.

    Raises BundleError unless they are samples 0..K-1 of exactly these records, each once; a repeated row is
    refused even where it is identical.
    """
    found: dict[tuple[str, int], AnswerRow] = {}
    for row in selected.rows:
        key = (row.record_id, row.sample_index)
        if key in found:
            raise BundleError(
                "a sample twice", got=f"{row.record_id!a} sample {row.sample_index}", need="each once"
            )
        found[key] = row
    expected = {(name, index) for name in record_ids for index in range(selected.samples_per_record)}
    if not expected:
        raise BundleError("no samples to analyse", got="an empty matrix")
    for what, odd in (("missing", expected - found.keys()), ("not expected", found.keys() - expected)):
        if odd:
            name, index = min(odd)
            raise BundleError(f"{len(odd)} samples are {what}", got=f"{name!a} sample {index} first")
    return {
        name: tuple(found[name, index] for index in range(selected.samples_per_record)) for name in record_ids
    }
