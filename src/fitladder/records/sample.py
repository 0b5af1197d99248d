"""SampleRow: one sample after both stages, as token ids, counts, finish reasons and seeds; never text."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["SampleRow", "TokenIds"]

TokenIds = npt.NDArray[np.int32]


@dataclass(frozen=True)
class SampleRow:
    """One of K completions of a record; ids are one-dimensional int32 arrays.

    `stage1_token_ids` are the sampled ids up to, not including, the first model EOS; the first
    `thinking_tokens` of them are the thinking (cut at the close marker, if there is one). What was cut
    from behind the EOS, and the EOS itself, is counted in `stage1_trimmed_tokens`. Stage 2, where it ran,
    saw prompt + thinking + injected close; its ids are the answer. Where it did not run, the answer is
    what stage 1 sampled behind the close marker.
    """

    record_id: str
    sample_index: int
    prompt_tokens: int
    stage1_seed: int
    stage1_token_ids: TokenIds
    stage1_trimmed_tokens: int
    stage1_finish_reason: str
    stage1_stop_reason: str | None
    thinking_tokens: int
    natural_close: bool  # the whole close marker stands in the sampled ids
    eos_inside_thinking: bool  # a model EOS came before any close marker
    forced_close: bool  # the close sequence was injected because no marker came
    answer_restart: bool  # marker came, but the sample did not stop by itself: answer sampled again
    injected_tokens: int  # of the close sequence; what a restarted answer's sample had sampled of it is not
    stage2_seed: int | None
    stage2_prompt_tokens: int  # 0 where stage 2 did not run
    stage2_token_ids: TokenIds
    stage2_trimmed_tokens: int
    stage2_finish_reason: str | None
    stage2_stop_reason: str | None
    answer_tokens: int
