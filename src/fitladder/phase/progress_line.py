"""One line on a running generation for people, and the least share of it that is done.

Pure: counts in, text out. The share is of the most that could be sampled, so it can end early, never late.
"""

from dataclasses import dataclass

from fitladder.records.engine_facts import EngineFacts
from fitladder.sampling.engine_protocol import Progress

__all__ = ["LiveLine", "live_line"]

SECOND_STAGE = 2


@dataclass(frozen=True)
class LiveLine:
    """Text for people, and percent of the stage's token limit."""

    text: str
    percent: float


def live_line(
    stage: int, progress: Progress, facts: EngineFacts, *, stage1_limit_tokens: int, stage1_tokens: int
) -> LiveLine:
    """`stage1_limit_tokens`: records * K * budget. `stage1_tokens`: what stage 1 had when it ended."""
    speed = progress.sampled_tokens / progress.elapsed_s if progress.elapsed_s > 0 else 0.0
    usable = max(1, facts.num_blocks - facts.null_blocks)
    parts = [
        f"stage {stage}",
        f"{progress.sampled_tokens:,} tokens",
        f"{speed:.1f} tokens/s",
        f"{progress.running_seqs} running, {progress.waiting_seqs} waiting",
        f"KV {100 * progress.kv_used_blocks / usable:.0f} %",
        f"{progress.preemptions} preemptions",
    ]
    if stage < SECOND_STAGE:
        left = max(0, stage1_limit_tokens - progress.sampled_tokens)
        percent = 100 * progress.sampled_tokens / max(1, stage1_limit_tokens)
        if speed > 0:
            parts.append(f"at most {left / speed:.0f} s to go")
        return LiveLine(", ".join(parts), min(99.0, percent))
    parts.append(f"{stage1_tokens:,} of thinking before")
    return LiveLine(", ".join(parts), 99.0)
