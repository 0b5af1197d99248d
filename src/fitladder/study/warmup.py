"""Which batches must an engine have met before its speed is measured? Every kernel's, not only its graphs'.

Triton compiles a kernel anew where a count becomes 1 or a multiple of 16, and a batch that prefills replays
no graph: widths, prefills and tokens of all three kinds are met here. Pure; it knows no engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fitladder.capacity.admission_safety import ActiveSequence
from fitladder.sampling.engine_protocol import SampleRequest
from fitladder.study.plan import StudySampling, Workload

__all__ = ["GroupedAdmission", "WarmupRun", "warmup_runs"]

SPECIAL = 16  # counts that are a multiple of it, or 1, have kernels of their own
PLATEAU_TOKENS = 8


@dataclass(frozen=True)
class GroupedAdmission:
    """An admission policy: `group` of the run's `samples` a step, so every width is met prefilling, going up.

    Of equal lengths, they end in the same order, and every width decodes on the way down.
    """

    group: int
    samples: int

    def next_step(
        self, now_step: int, active: Sequence[ActiveSequence], waiting_prompt_tokens: Sequence[int]
    ) -> int | None:
        """The step of the first waiting one's group."""
        return max(now_step, (self.samples - len(waiting_prompt_tokens)) // self.group)

    def record_end(self, ended: ActiveSequence) -> None:
        """Ends free nothing that it waits for."""


@dataclass(frozen=True)
class WarmupRun:
    """One warm-up run: requests, and how they enter."""

    requests: list[SampleRequest]
    policy: GroupedAdmission


def warmup_runs(workload: Workload, sampling: StudySampling, width: int) -> list[WarmupRun]:
    """Runs of `width` samples each, a few seconds together. No prompt is longer than the workload's.

    One a step as they are; with prompts, then with whole batches, a multiple of 16 long; two and 16 a step.
    """
    lengths = workload.prompt_lengths(width)
    aligned = [max(1, one - one % SPECIAL) for one in lengths]
    whole = [max(1, one - (one + decodes) % SPECIAL) for decodes, one in enumerate(lengths)]
    runs = [(lengths, 1), (aligned, 1), (whole, 1), (lengths, 2), (lengths, SPECIAL)]
    return [
        WarmupRun(
            workload.model_copy(update={"prompt_tokens": tuple(prompts)}).requests(
                width, sampling.run_seed, width + PLATEAU_TOKENS
            ),
            GroupedAdmission(group, width),
        )
        for prompts, group in runs
    ]
