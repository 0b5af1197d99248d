"""Columns of a bundle that the content-blind audit reads: token ids, counts, finish reasons and flags.

There is no column for text, parser output, correctness or hidden examples.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from fitladder.errors import BundleError
from fitladder.sampling.row_rules import RowCounts, row_faults

__all__ = ["TerminationColumns", "check_columns"]

Ids = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class TerminationColumns:
    """One entry a sample, in bundle order; the columns are fields of `SampleRow` (records/sample.py).

    `stage1_token_ids` holds one int32 array a sample: the ids of stage 1 before the first model EOS. Where
    stage 2 did not run, its finish reason is None and `stage2_tokens` is 0.
    """

    record_ids: Sequence[str]
    sample_indices: Counts
    stage1_token_ids: Sequence[Ids]
    thinking_tokens: Counts
    stage1_finish_reasons: Sequence[str]
    natural_close: Flags
    eos_inside_thinking: Flags
    forced_close: Flags
    answer_restart: Flags
    stage2_tokens: Counts
    stage2_finish_reasons: Sequence[str | None]

    def __len__(self) -> int:
        return len(self.record_ids)

    def name(self, row: int) -> str:
        """Name of the sample in messages and audits: `record_id#sample_index`."""
        return f"{self.record_ids[row]}#{self.sample_indices[row]}"

    def thinking_ids(self, row: int) -> Ids:
        """Stage-1 ids before the close marker, or all of them where there is none; int32, one dimension."""
        return self.stage1_token_ids[row][: self.thinking_tokens[row]]


def check_columns(columns: TerminationColumns, budget_tokens: int, k: int) -> None:
    """Refuse columns that no two-stage generation can produce.

    Args:
        budget_tokens: thinking budget, the most ids that stage 1 can sample.
        k: samples of each record.

    Raises BundleError naming the first sample that contradicts itself, or a column of another length.
    """
    count = len(columns)
    for field in fields(columns):
        have = len(getattr(columns, field.name))
        if have != count:
            raise BundleError(f"column {field.name}", got=f"{have} entries", need=count)
    sampled = np.array([len(ids) for ids in columns.stage1_token_ids], dtype=np.int64)
    ran = np.array([reason is not None for reason in columns.stage2_finish_reasons], dtype=np.bool_)
    rows = RowCounts(
        stage1_tokens=sampled,
        thinking_tokens=columns.thinking_tokens,
        stage2_tokens=columns.stage2_tokens,
        natural_close=columns.natural_close,
        eos_inside_thinking=columns.eos_inside_thinking,
        forced_close=columns.forced_close,
        answer_restart=columns.answer_restart,
        stage2_ran=ran,
    )
    for wrong, what in (
        ((columns.sample_indices < 0) | (columns.sample_indices >= k), f"a sample index outside 0..{k - 1}"),
        (columns.stage2_tokens < 0, "less than no stage-2 ids"),
        *row_faults(rows, budget_tokens),
    ):
        if wrong.any():
            sample = columns.name(int(np.argmax(wrong)))
            raise BundleError(f"sample {sample} is none of this protocol", got=what, do="verify the bundle")
