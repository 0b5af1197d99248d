"""The two-stage rule: how a sample's thinking ended, and what stage 2 is asked, from its stage-1 ids.

Stated here once: two_stage.py builds rows by it, row_rules.py checks the rows of an engine process by it.
Pure; ids are compared, nothing is decoded.
"""

from dataclasses import dataclass

from fitladder.records.sample import TokenIds
from fitladder.records.settings import Thinking
from fitladder.sampling.marker import common_prefix, find_run

__all__ = ["ThinkingEnd", "end_thinking"]


@dataclass(frozen=True)
class ThinkingEnd:
    """How the thinking of one sample ended; all counts in tokens.

    Exactly one of a natural close (the whole close marker was sampled), a forced close (the close sequence is
    injected) and an EOS inside thinking without an answer. `behind_marker_tokens`: what stage 1 sampled
    behind a natural close. `close_tokens`: of the whole close sequence.
    """

    thinking_tokens: int
    natural_close: bool
    eos_inside_thinking: bool
    forced_close: bool
    answer_restart: bool
    injected_tokens: int
    behind_marker_tokens: int
    close_tokens: int

    @property
    def needs_stage2(self) -> bool:
        """True where the answer is sampled by a stage-2 request."""
        return self.forced_close or self.answer_restart

    def stage2_prompt_tokens(self, prompt_tokens: int) -> int:
        """Prompt + thinking + close sequence of the stage-2 request; 0 where there is none."""
        return prompt_tokens + self.thinking_tokens + self.close_tokens if self.needs_stage2 else 0

    def answer_tokens(self, stage2_tokens: int) -> int:
        """Tokens of the answer: what stage 2 sampled, else what stands behind a natural close."""
        return stage2_tokens if self.needs_stage2 else self.behind_marker_tokens


def end_thinking(token_ids: TokenIds, rule: Thinking, *, stopped: bool) -> ThinkingEnd:
    """The end of a sample's thinking.

    Args:
        token_ids: sampled by stage 1, up to and without the first model EOS.
        rule: the registered markers, close sequence and treatment of an EOS inside thinking.
        stopped: whether the sample ended by a model EOS, not at its limit.
    """
    marker_at = find_run(token_ids, rule.close_marker_token_ids)
    natural = marker_at is not None
    thinking = len(token_ids) if marker_at is None else marker_at
    forced = not natural and (not stopped or rule.eos_inside_thinking == "forced_close")
    restart = natural and not stopped
    close = len(rule.close_token_ids)
    sampled_close = common_prefix(token_ids[thinking:], rule.close_token_ids) if natural else 0
    return ThinkingEnd(
        thinking_tokens=thinking,
        natural_close=natural,
        eos_inside_thinking=not natural and stopped,
        forced_close=forced,
        answer_restart=restart,
        injected_tokens=close - sampled_close if forced or restart else 0,
        behind_marker_tokens=(len(token_ids) - thinking - len(rule.close_marker_token_ids) if natural else 0),
        close_tokens=close,
    )
