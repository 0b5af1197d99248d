"""The step loop against a small stand-in for vLLM's engine and scheduler."""

from collections import deque
from types import SimpleNamespace

import pytest

from fitladder.capacity.admission import SpacedAdmission
from fitladder.capacity.admission_safety import ActiveSequence
from fitladder.capacity.pool import Pool
from fitladder.engine.child.step_loop import Submission, count_steps, run_steps
from fitladder.errors import EngineFailed
from fitladder.study.warmup import GroupedAdmission

BLOCK = 4


class StandIn:
    """One token a step for each running sequence; blocks of 4; no preemption, it dies instead."""

    def __init__(self, width, blocks):
        self.width, self.scheduler = width, self
        self.running, self.waiting = [], deque()
        self.kv_cache_manager = SimpleNamespace(block_pool=self)
        self.num_gpu_blocks = blocks + 1
        self.peak_blocks = 0

    def get_num_free_blocks(self):
        return self.num_gpu_blocks - 1 - self.used()

    def used(self):
        return sum(-(-max(1, one.num_computed_tokens) // BLOCK) for one in self.running)

    def add_request(self, name, prompt, parameters):
        self.waiting.append(
            SimpleNamespace(
                request_id=name, num_tokens=prompt, num_prompt_tokens=prompt, num_output_tokens=0,
                num_computed_tokens=0, max_tokens=parameters,
            )
        )  # fmt: skip

    def has_unfinished_requests(self):
        return bool(self.running or self.waiting)

    def schedule(self):
        while self.waiting and len(self.running) < self.width:
            self.running.append(self.waiting.popleft())
        scheduled = {one.request_id: one.num_tokens - one.num_computed_tokens for one in self.running}
        for one in self.running:
            one.num_computed_tokens = one.num_tokens
        self.peak_blocks = max(self.peak_blocks, self.used())
        if self.used() > self.num_gpu_blocks - 1:
            raise RuntimeError("a real engine would preempt here")
        return SimpleNamespace(
            num_scheduled_tokens=scheduled,
            total_num_scheduled_tokens=sum(scheduled.values()),
            preempted_req_ids=set(),
        )

    def step(self):
        self.schedule()
        done = []
        for one in list(self.running):
            one.num_tokens += 1
            one.num_output_tokens += 1
            if one.num_output_tokens == one.max_tokens:
                self.running.remove(one)
                result = SimpleNamespace(token_ids=[0] * one.max_tokens)
                done.append(SimpleNamespace(request_id=one.request_id, finished=True, outputs=[result]))
        return done


def submissions(prompts, length):
    return [Submission(str(n), prompt, length, prompt, length) for n, prompt in enumerate(prompts)]


def run(engine, jobs, policy=None, seen=None):
    counts = count_steps(engine)
    finished = run_steps(
        engine,
        engine,
        jobs,
        policy=policy,
        counts=counts,
        on_progress=(seen if seen is not None else []).append,
        progress_interval_s=0.0,
    )
    return finished, counts


def test_without_a_policy_everything_is_admitted_at_once_and_counted():
    engine, seen = StandIn(width=2, blocks=100), []
    finished, counts = run(engine, submissions([3, 3, 3], 5), seen=seen)
    assert set(finished) == {"0", "1", "2"}
    assert (counts.steps, counts.widest_step, counts.preemptions) == (10, 2, 0)
    assert counts.scheduled_tokens == 3 * (3 + 5 - 1)
    assert counts.scheduled_sequences == 15
    first, last = seen[0], seen[-1]
    assert (first.running_seqs, first.waiting_seqs, first.sampled_tokens) == (2, 1, 2)
    assert (last.running_seqs, last.sampled_tokens, last.kv_used_blocks) == (0, 15, 0)


def test_spaced_admission_keeps_a_pool_that_greedy_width_overflows():
    prompts, length, blocks = [5] * 12, 40, 30
    with pytest.raises(RuntimeError, match="would preempt"):
        run(StandIn(width=6, blocks=blocks), submissions(prompts, length))
    engine = StandIn(width=6, blocks=blocks)
    policy = SpacedAdmission(
        pool=Pool(usable_blocks=blocks, block_size_tokens=BLOCK),
        prompt_tokens=prompts,
        max_new_tokens=length,
        max_num_seqs=6,
        max_num_batched_tokens=256,
    )
    finished, counts = run(engine, submissions(prompts, length), policy)
    assert len(finished) == 12
    assert engine.peak_blocks <= blocks
    fitted = blocks // Pool(blocks, BLOCK).peak_blocks(5, length)
    assert counts.steps < -(-12 // fitted) * length  # better than waves of the fitted width


@pytest.mark.parametrize("group", [1, 2, 3])
def test_grouped_admission_starts_one_group_a_step(group):
    engine, widths = StandIn(width=6, blocks=100), []
    schedule = engine.schedule
    engine.schedule = lambda: widths.append(len((output := schedule()).num_scheduled_tokens)) or output
    run(engine, submissions([5] * 6, 9), GroupedAdmission(group, 6))
    growing = list(range(group, 7, group))
    assert widths == [*growing, *[6] * (9 - len(growing)), *growing[-2::-1]]


def test_a_policy_is_told_of_every_end_and_the_tokens_left():
    ended = []
    policy = SimpleNamespace(next_step=lambda now, *_: now, record_end=ended.append)
    jobs = [Submission("0", 3, 5, 3, 5), Submission("1", 3, 5, 3, 9)]  # the second ends 4 before its budget
    run(StandIn(width=2, blocks=100), jobs, policy)
    assert ended == [ActiveSequence(8, 0), ActiveSequence(8, 4)]


def test_a_request_that_ends_twice_is_an_engine_failure():
    engine = StandIn(width=1, blocks=100)
    step = engine.step
    engine.step = lambda: step() * 2
    with pytest.raises(EngineFailed, match="not made: got 0"):
        run(engine, submissions([3], 2))


def test_the_last_progress_is_reported_however_short_the_run():
    seen = []
    engine = StandIn(width=2, blocks=100)
    run_steps(
        engine, engine, submissions([3, 3], 5), policy=None, counts=count_steps(engine),
        on_progress=seen.append, progress_interval_s=60.0,
    )  # fmt: skip
    assert [(one.sampled_tokens, one.running_seqs, one.waiting_seqs) for one in seen] == [(10, 0, 0)]


def test_admission_that_never_admits_is_an_engine_failure():
    never = SimpleNamespace(next_step=lambda *_: None, record_end=lambda _: None)
    with pytest.raises(EngineFailed, match="starts nothing"):
        run(StandIn(width=2, blocks=100), submissions([3], 5), never)


def test_an_output_of_no_submission_is_an_engine_failure():
    engine = StandIn(width=2, blocks=100)
    engine.add_request("stray", 2, 1)
    with pytest.raises(EngineFailed, match="not made"):
        run(engine, submissions([3], 5))
