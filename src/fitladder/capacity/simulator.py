"""A run without a GPU: widths, steps, preemptions and recomputed tokens, simulated.

A block- and step-exact model of vLLM's V1 scheduler: first come first, no prefix cache, no speculation, no
watermark. Running sequences are served in order; where no block is free the newest is preempted and
recomputed from its first token; nothing new starts in a step with a preemption. Steps in which only counts
move are taken at once.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

from fitladder.capacity.admission import AdmissionPolicy
from fitladder.capacity.admission_safety import ActiveSequence
from fitladder.capacity.pool import Pool
from fitladder.errors import GateRefused

__all__ = ["Request", "SimulatedRun", "simulate"]


@dataclass(frozen=True, slots=True)
class Request:
    """What a sequence brings, and how many tokens it will sample (a policy is not told)."""

    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class SimulatedRun:
    """Counts of one run; `width_steps` are pairs (sequences in the batch, steps), in order of width.

    prefill_steps: those in which something prefills, whatever decodes beside it; they replay no graph.
    """

    steps: int
    sampled_tokens: int
    scheduled_tokens: int
    recomputed_tokens: int
    preemptions: int
    peak_blocks: int
    prefill_steps: int
    width_steps: tuple[tuple[int, int], ...]

    @property
    def mean_width(self) -> float:
        """Sampled tokens a step."""
        return self.sampled_tokens / self.steps if self.steps else 0.0

    @property
    def prefilled_tokens(self) -> int:
        """Tokens computed beyond one for each sampled one: prompts, and what was recomputed."""
        return self.scheduled_tokens - self.sampled_tokens

    @property
    def peak_width(self) -> int:
        """The widest batch."""
        return max((width for width, _ in self.width_steps), default=0)


@dataclass(slots=True)
class _Sequence:
    request: Request
    sampled: int = 0
    computed: int = 0
    blocks: int = 0  # attention blocks only

    @property
    def tokens(self) -> int:
        return self.request.prompt_tokens + self.sampled

    def seen_by_policy(self, max_new_tokens: int) -> ActiveSequence:
        uncomputed = self.tokens - self.computed - (1 if self.sampled else 0)
        return ActiveSequence(self.tokens, max_new_tokens - self.sampled, uncomputed)


class _Engine:
    """The scheduler's state between steps."""

    def __init__(
        self,
        requests: Sequence[Request],
        pool: Pool,
        *,
        max_num_seqs: int,
        max_num_batched_tokens: int,
        policy: AdmissionPolicy | None,
        max_new_tokens: int,
    ) -> None:
        self.pool, self.max_num_seqs, self.budget = pool, max_num_seqs, max_num_batched_tokens
        self.policy, self.max_new_tokens = policy, max_new_tokens
        arrivals = [_Sequence(one) for one in requests]
        self.held_back = deque(arrivals if policy else [])
        self.waiting = deque([] if policy else arrivals)
        self.running: list[_Sequence] = []
        self.free = self.least_free = pool.usable_blocks
        self.now = self.sampled = self.scheduled = self.preemptions = self.prefill_steps = 0
        self.widths: Counter[int] = Counter()
        self.next_start: int | None = 0  # the policy's last answer; 0 makes the first step ask

    def run(self) -> None:
        while self.running or self.waiting or self.held_back:
            self.record_handoff()
            if self.step():
                self.repeat()

    def record_handoff(self) -> None:
        """The policy moves held-back sequences into the engine's queue."""
        while self.policy is not None and self.held_back and self.next_start == self.now:
            present = [*self.running, *self.waiting]
            active = [one.seen_by_policy(self.max_new_tokens) for one in present]
            lengths = [one.request.prompt_tokens for one in self.held_back]
            self.next_start = self.policy.next_step(self.now, active, lengths)
            if self.next_start == self.now:
                self.waiting.append(self.held_back.popleft())
            elif not present:
                raise GateRefused("admission leaves the engine idle", got=f"{len(lengths)} waiting")

    def missing(self, one: _Sequence, positions: int) -> int:
        """Blocks that `positions` need beyond those held."""
        needed = max(0, -(-positions // self.pool.block_size_tokens) - one.blocks)
        return needed if one.blocks else needed + self.pool.mamba_groups

    def allocate(self, one: _Sequence, positions: int) -> bool:
        missing = self.missing(one, positions)
        if missing > self.free:
            return False
        self.free -= missing
        one.blocks = max(one.blocks, -(-positions // self.pool.block_size_tokens))
        return True

    def release(self, one: _Sequence) -> None:
        self.free += one.blocks + self.pool.mamba_groups
        one.blocks = one.computed = 0

    def preempt(self) -> _Sequence:
        victim = self.running.pop()
        self.release(victim)
        self.waiting.appendleft(victim)
        self.preemptions += 1
        return victim

    def step(self) -> bool:
        """One engine step. True: a decode step in which only counts moved, so that the next may be alike."""
        batch: list[tuple[_Sequence, int]] = []
        budget, free, preempted = self.budget, self.free, self.preemptions
        index = 0
        while index < len(self.running) and budget:
            one = self.running[index]
            tokens = min(one.tokens - one.computed, budget)
            while not self.allocate(one, one.computed + tokens):
                if self.preempt() is one:
                    break
            else:
                batch.append((one, tokens))
                budget -= tokens
                index += 1
        admitting = self.preemptions == preempted
        while admitting and self.waiting and len(self.running) < self.max_num_seqs and budget:
            one = self.waiting[0]
            if self.missing(one, one.tokens) > self.free:  # all of it, though it may come in chunks
                break
            tokens = min(one.tokens, budget)
            self.allocate(one, tokens)
            self.running.append(self.waiting.popleft())
            batch.append((one, tokens))
            budget -= tokens
        self.least_free = min(self.least_free, self.free)
        scheduled = self.budget - budget
        quiet = self.free == free and self.preemptions == preempted and scheduled == len(batch)
        ended = self.advance(batch, scheduled)
        # a prompt that the budget left one token of looks like a decode step, and is none
        return quiet and not ended and all(one.tokens - one.computed == 1 for one in self.running)

    def advance(self, batch: list[tuple[_Sequence, int]], scheduled: int) -> bool:
        """Sample a token wherever all are computed. True when a sequence ended."""
        if not batch:
            raise GateRefused("the run stands still", got=f"{len(self.waiting)} waiting")
        self.scheduled += scheduled
        self.prefill_steps += scheduled > len(batch)
        self.widths[len(batch)] += 1
        self.now += 1
        before = len(self.running)
        for one, tokens in batch:
            one.computed += tokens
            if one.computed == one.tokens:
                one.sampled += 1
                self.sampled += 1
                if one.sampled == one.request.output_tokens:
                    if self.policy is not None:
                        self.policy.record_end(one.seen_by_policy(self.max_new_tokens))
                    self.running.remove(one)
                    self.release(one)
                    self.next_start = self.now
        return len(self.running) < before

    def repeat(self) -> None:
        """Take the same step again until a block is needed, a sequence ends or the policy has its say."""
        size = self.pool.block_size_tokens
        steps = min(
            min(one.blocks * size - one.computed, one.request.output_tokens - one.sampled - 1)
            for one in self.running
        )
        if self.held_back and self.next_start is not None:
            steps = min(steps, self.next_start - self.now)
        width = len(self.running)
        if steps > 0:
            for one in self.running:
                one.computed += steps
                one.sampled += steps
            self.sampled += steps * width
            self.scheduled += steps * width
            self.widths[width] += steps
            self.now += steps


def simulate(
    requests: Sequence[Request],
    pool: Pool,
    *,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    policy: AdmissionPolicy | None = None,
    max_new_tokens: int | None = None,
) -> SimulatedRun:
    """Run the requests, first come first; without a policy the engine gets all of them at once.

    `max_new_tokens` is the budget that a policy must assume of each (default: the longest output). Raises
    GateRefused on a request that no engine with this pool can finish.
    """
    if max_num_seqs < 1 or max_num_batched_tokens < max_num_seqs:
        raise GateRefused(
            "simulated engine",
            got=f"max_num_seqs {max_num_seqs}, max_num_batched_tokens {max_num_batched_tokens}",
            need="at least one sequence, and a token for each in a step",
        )
    longest = max((one.output_tokens for one in requests), default=0)
    budget = longest if max_new_tokens is None else max_new_tokens
    if longest > budget:
        raise GateRefused("an output exceeds the budget", got=longest, need=f"at most {budget}")
    for one in requests:
        pool.check_alone(one.prompt_tokens, one.output_tokens)
    engine = _Engine(
        requests,
        pool,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        policy=policy,
        max_new_tokens=budget,
    )
    engine.run()
    needed = sum(one.prompt_tokens + one.output_tokens - 1 for one in requests)
    return SimulatedRun(
        steps=engine.now,
        sampled_tokens=engine.sampled,
        scheduled_tokens=engine.scheduled,
        recomputed_tokens=engine.scheduled - needed,
        preemptions=engine.preemptions,
        peak_blocks=pool.usable_blocks - engine.least_free,
        prefill_steps=engine.prefill_steps,
        width_steps=tuple(sorted(engine.widths.items())),
    )
