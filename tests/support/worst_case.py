"""The registered fit rule as an admission: every active sequence is charged its longest from its start."""

from collections.abc import Sequence
from dataclasses import dataclass

from fitladder.capacity.admission_safety import ActiveSequence
from fitladder.capacity.pool import Pool


@dataclass(frozen=True)
class WorstCaseAdmission:
    """Starts one more where it fits at its longest beside the others at theirs."""

    pool: Pool
    longest_prompt_tokens: int
    max_new_tokens: int
    max_num_seqs: int

    def next_step(
        self, now_step: int, active: Sequence[ActiveSequence], waiting_prompt_tokens: Sequence[int]
    ) -> int | None:
        each = self.pool.check_alone(self.longest_prompt_tokens, self.max_new_tokens)
        width = min(self.max_num_seqs, self.pool.usable_blocks // each)
        return now_step if waiting_prompt_tokens and len(active) < width else None

    def record_end(self, ended: ActiveSequence) -> None:
        """Only the number of active sequences counts."""
