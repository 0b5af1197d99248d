"""Warm-up runs of a cell: batches that make the engine compile every kernel before its speed is measured.

Triton compiles a kernel once more where an integer argument is 1 or a multiple of 16, and a batch with a
prefill replays no CUDA graph; so decode widths, prompt lengths and batched tokens of all three kinds are run.
Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fitladder.capacity.admission_safety import ActiveSequence
from fitladder.sampling.engine_protocol import SampleRequest
from fitladder.study.plan import StudySampling, Workload

__all__ = ["GroupedAdmission", "WarmupRun", "warmup_runs"]

SPECIAL = 16  # Triton specialises on integers that are a multiple of it, and on 1
PLATEAU_TOKENS = 8


@dataclass(frozen=True)
class GroupedAdmission:
    """Admission policy that starts `group` of the run's `samples` at each step.

    Every width that is a multiple of `group` is so run with a prefill. Samples of equal length end in the
    order of their start, so that every such width also decodes.
    """

    group: int
    samples: int

    def next_step(
        self, now_step: int, active: Sequence[ActiveSequence], waiting_prompt_tokens: Sequence[int]
    ) -> int | None:
        """The step at which the group of the first waiting sample starts."""
        return max(now_step, (self.samples - len(waiting_prompt_tokens)) // self.group)

    def record_end(self, ended: ActiveSequence) -> None:
        """Ignored: no start depends on an end."""


@dataclass(frozen=True)
class WarmupRun:
    """One warm-up run: its requests and their admission."""

    requests: list[SampleRequest]
    policy: GroupedAdmission


def warmup_runs(workload: Workload, sampling: StudySampling, width: int) -> list[WarmupRun]:
    """Warm-up runs of `width` samples each, a few seconds together; no prompt is longer than the workload's.

    In order: one sample a step with the workload's prompts, with prompts of a multiple of 16 tokens, with
    batches of a multiple of 16 tokens; then two, and 16, samples a step.
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
