"""Step loop of vLLM's engine with an admission policy, live counts and counted schedules.

Calls `add_request` and `step` as `LLM.generate` does; between two steps an admission policy may hold requests
back. Imports no vllm: engine, scheduler and prompts are arguments. Measured against `LLM.generate` by a
study's `bare` runs.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fitladder.capacity.admission import AdmissionPolicy
from fitladder.capacity.admission_safety import ActiveSequence
from fitladder.errors import EngineFailed
from fitladder.sampling.engine_protocol import Progress

__all__ = ["StepCounts", "Submission", "count_steps", "run_steps"]


@dataclass(frozen=True)
class Submission:
    """One sample to run. `prompt` and `parameters` are vLLM's own objects; lengths are in tokens."""

    request_id: str
    prompt: Any
    parameters: Any
    prompt_tokens: int
    max_tokens: int


@dataclass
class StepCounts:
    """What a scheduler did since counting began.

    `scheduled_sequences` sums the width of every step; `preemptions` counts each preempted request each time.
    """

    steps: int = 0
    scheduled_tokens: int = 0
    scheduled_sequences: int = 0
    widest_step: int = 0
    preemptions: int = 0


def count_steps(scheduler: Any) -> StepCounts:
    """Count every call of `scheduler.schedule` from now on, by wrapping it; the returned counts are live.

    Costs two attribute reads and four additions a step.
    """
    counts, schedule = StepCounts(), scheduler.schedule

    def counted(*args: Any, **kwargs: Any) -> Any:
        output = schedule(*args, **kwargs)
        width = len(output.num_scheduled_tokens)
        counts.steps += 1
        counts.scheduled_tokens += output.total_num_scheduled_tokens
        counts.scheduled_sequences += width
        counts.widest_step = max(counts.widest_step, width)
        counts.preemptions += len(output.preempted_req_ids or ())
        return output

    scheduler.schedule = counted
    return counts


@dataclass
class _Run:
    """One call of `run_steps`: what waits for admission, what was admitted, and the policy's last answer."""

    engine: Any
    scheduler: Any
    policy: AdmissionPolicy | None
    waiting: deque[Submission]
    budgets: dict[str, Submission] = field(default_factory=dict)
    step: int = 0
    asked: bool = False  # nothing has started or ended since the policy last answered
    next_start: int | None = None

    def admit(self) -> None:
        """Add the requests that may start before this step. Raises EngineFailed where none ever could."""
        while self.waiting and self._may_start():
            one = self.waiting.popleft()
            self.engine.add_request(one.request_id, one.prompt, one.parameters)
            self.budgets[one.request_id] = one
            self.asked = False
        if self.waiting and not self.engine.has_unfinished_requests():
            raise EngineFailed("admission starts nothing", got=f"{len(self.waiting)} waiting, none active")

    def _may_start(self) -> bool:
        if self.policy is None:
            return True
        if not self.asked:
            prompts = [one.prompt_tokens for one in self.waiting]
            self.next_start = self.policy.next_step(self.step, self._active(), prompts)
            self.asked = True
        return self.next_start is not None and self.next_start <= self.step

    def _active(self) -> list[ActiveSequence]:
        return [
            ActiveSequence(
                tokens=request.num_tokens,
                remaining_tokens=request.max_tokens - request.num_output_tokens,
                prefill_tokens=max(0, request.num_prompt_tokens - request.num_computed_tokens),
            )
            for request in _live(self.scheduler)
        ]

    def ended(self, output: Any) -> None:
        """Take a finished request out of the budgets and tell the policy of its end."""
        one = self.budgets.pop(output.request_id)
        sampled = len(output.outputs[0].token_ids)
        self.asked = False
        if self.policy is not None:
            self.policy.record_end(ActiveSequence(one.prompt_tokens + sampled, one.max_tokens - sampled))


def run_steps(
    engine: Any,
    scheduler: Any,
    submissions: Sequence[Submission],
    *,
    policy: AdmissionPolicy | None,
    counts: StepCounts,
    on_progress: Callable[[Progress], None],
    progress_interval_s: float,
) -> dict[str, Any]:
    """Run all submissions to their end.

    Args:
        engine: vLLM's `LLMEngine`, idle; scheduler: its scheduler, wrapped by `count_steps`.
        submissions: in the order of admission.
        policy: decides when each enters; None adds all at once, and vLLM's scheduler admits them, first come
            first served, up to max_num_seqs.
        counts: what `count_steps` returned.
        on_progress: gets the counts since this call began, each `progress_interval_s` and once at the end.

    Returns vLLM's final `RequestOutput` by request id. Raises EngineFailed where an output belongs to no
    submission, or where the policy admits nothing and nothing is left to end.
    """
    run = _Run(engine, scheduler, policy, deque(submissions))
    finished: dict[str, Any] = {}
    started = reported = time.perf_counter()
    sampled, preemptions = 0, counts.preemptions
    while run.waiting or engine.has_unfinished_requests():
        run.admit()
        for output in engine.step():
            if not output.finished:
                continue
            if output.request_id not in run.budgets:
                raise EngineFailed("the engine finished a request that was not made", got=output.request_id)
            run.ended(output)
            finished[output.request_id] = output
            sampled += len(output.outputs[0].token_ids)
        run.step += 1
        now = time.perf_counter()
        if now - reported >= progress_interval_s:
            reported = now
            on_progress(
                _progress(
                    scheduler, sampled, now - started, counts.preemptions - preemptions, len(run.waiting)
                )
            )
    on_progress(
        _progress(scheduler, sampled, time.perf_counter() - started, counts.preemptions - preemptions, 0)
    )
    return finished


def _progress(scheduler: Any, ended_tokens: int, elapsed_s: float, preemptions: int, held: int) -> Progress:
    pool = scheduler.kv_cache_manager.block_pool
    running, queued = list(scheduler.running), list(_queued(scheduler))
    return Progress(
        sampled_tokens=ended_tokens + sum(request.num_output_tokens for request in [*running, *queued]),
        elapsed_s=elapsed_s,
        running_seqs=len(running),
        waiting_seqs=len(queued) + held,
        kv_used_blocks=pool.num_gpu_blocks - 1 - pool.get_num_free_blocks(),
        preemptions=preemptions,
    )


def _live(scheduler: Any) -> list[Any]:
    return [*scheduler.running, *_queued(scheduler)]


def _queued(scheduler: Any) -> Iterable[Any]:
    yield from scheduler.waiting
    yield from getattr(scheduler, "skipped_waiting", ())
