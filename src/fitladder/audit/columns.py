"""What may a content-blind audit see of a bundle? Ids, counts, finish reasons and flags, by column.

No text, no parser output, no correctness, no hidden example has a place here.
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
    """One entry a sample, in bundle order, as `records/sample.py` defines them.

    `stage1_token_ids` is an int32 array a sample: what stage 1 sampled up to, not including, the first model
    EOS. `stage2_finish_reasons` is None, and `stage2_tokens` 0, where stage 2 did not run.
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
        """`record_id#sample_index`, as messages and audits name a sample."""
        return f"{self.record_ids[row]}#{self.sample_indices[row]}"

    def thinking_ids(self, row: int) -> Ids:
        """The thinking: the ids before the close marker, or all of them where there is none."""
        return self.stage1_token_ids[row][: self.thinking_tokens[row]]


def check_columns(columns: TerminationColumns, budget_tokens: int, k: int) -> None:
    """The columns describe samples that this protocol can produce. Raises BundleError naming the sample."""
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
