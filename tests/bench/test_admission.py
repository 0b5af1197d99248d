"""What does spaced admission gain, and what does a decision cost? Figures only; `pytest -s` shows them.

The pool and lengths of the live cells: 230 blocks of 528 tokens, 3 Mamba groups, 3,072 sampled tokens, at
4.8 ms a step and 0.15 ms a sequence in it. Nothing is charged for recomputed tokens, which favours
overcommit.
"""

import time

import numpy as np

from fitladder.capacity.admission import SpacedAdmission
from fitladder.capacity.admission_safety import ActiveSequence, earliest_safe_step
from fitladder.capacity.capture_coverage import covering_capture_list, dense_capture_list
from fitladder.capacity.pool import Pool
from fitladder.capacity.simulator import Request, SimulatedRun, simulate
from fitladder.capacity.spaced_starts import lower_bound_steps
from fitladder.capacity.step_time import StepTime

POOL, LENGTH, BATCHED = Pool(229, 528, 3), 3_072, 32_768
BASE_ARM = (978, 990, 980, 986, 974, 980, 975, 985, 987, 984, 982, 983)
STEP = StepTime(0.0048, 0.00015)
LISTS = (covering_capture_list, dense_capture_list)


def prompts_of(count: int) -> list[int]:
    return [BASE_ARM[i % 12] for i in range(count)]


def run(requests: list[Request], width: int, spaced: bool = False) -> SimulatedRun:
    prompts = [one.prompt_tokens for one in requests]
    policy = SpacedAdmission(POOL, prompts, LENGTH, width, BATCHED) if spaced else None
    limits = {"max_num_seqs": width, "max_num_batched_tokens": BATCHED, "max_new_tokens": LENGTH}
    return simulate(requests, POOL, policy=policy, **limits)


def test_gain_over_fitted_and_overcommitted() -> None:
    print("\n sequences   steps   bound  speed/fitted  speed/overcommitted  preemptions there  simulated in")
    for count in (48, 144, 480):
        requests = [Request(prompt, LENGTH) for prompt in prompts_of(count)]
        fitted, over = run(requests, 19), run(requests, 64)
        began = time.perf_counter()
        spaced = run(requests, 36, spaced=True)
        seconds = time.perf_counter() - began
        bound = lower_bound_steps(prompts_of(count), LENGTH, POOL)
        gain, against = (STEP.seconds(other) / STEP.seconds(spaced) for other in (fitted, over))
        print(
            f"{count:10} {spaced.steps:7} {bound:7} {gain:13.3f} {against:20.3f} {over.preemptions:18}"
            f" {seconds:12.2f}s"
        )
        padded = (STEP.seconds(spaced, lists(36)) / STEP.seconds(spaced) for lists in LISTS)
        print("           seconds with a graph list over unpadded: " + " / ".join(f"{x:.3f}" for x in padded))
        assert (spaced.preemptions, spaced.recomputed_tokens) == (0, 0)


def test_gain_when_some_end_early() -> None:
    print("\n share that ends early, uniformly: speed over fitted at 48 / 144 / 480, mean of 3 seeds")
    for share in (0.0, 0.05, 0.1, 0.25, 0.5, 1.0):
        gains = []
        for count in (48, 144, 480):
            ratios = []
            for seed in range(3):
                draw = np.random.default_rng(seed)
                outputs = np.where(draw.random(count) < share, draw.integers(1, LENGTH, count), LENGTH)
                requests = [Request(p, int(n)) for p, n in zip(prompts_of(count), outputs, strict=True)]
                spaced = run(requests, 36, spaced=True)
                assert spaced.preemptions == 0
                ratios.append(STEP.seconds(run(requests, 19)) / STEP.seconds(spaced))
            gains.append(sum(ratios) / len(ratios))
        print(f"{share:22.2f}: " + " / ".join(f"{gain:.3f}" for gain in gains))


def test_cost_of_a_decision() -> None:
    for width in (20, 40, 144):
        pool = Pool(20 * width, 528, 3)
        active = [ActiveSequence(1_000 + 20 * i, LENGTH - 20 * i) for i in range(width)]
        calls, began = 500, time.perf_counter()
        for _ in range(calls):
            earliest_safe_step(pool, active, 990, LENGTH, BATCHED - width)
        print(f"\nsafe start beside {width} active: {(time.perf_counter() - began) / calls * 1e6:.0f} us")
    for count, pool, length in ((480, POOL, LENGTH), (144, Pool(1_948, 528, 3), 49_152)):
        began = time.perf_counter()
        policy = SpacedAdmission(pool, prompts_of(count), length, 64, BATCHED)
        print(f"plan of {count} sequences of {length}: {(time.perf_counter() - began) * 1e3:.1f} ms")
        assert len(policy.starts) == count


def test_simulated_run_of_a_registered_phase() -> None:
    requests = [Request(prompt, 49_152) for prompt in prompts_of(144)]
    began = time.perf_counter()
    result = simulate(requests, Pool(1_948, 528, 3), max_num_seqs=64, max_num_batched_tokens=BATCHED)
    seconds = time.perf_counter() - began
    print(f"\n144 x 49,152 tokens, 64 wide: {result.preemptions} preemptions, simulated in {seconds:.2f} s")
    assert result.sampled_tokens == 144 * 49_152
