"""The warm-up meets every width, prefilling and decoding, and counts of 1 and of multiples of 16."""

import pytest

from fitladder.capacity.pool import Pool
from fitladder.capacity.simulator import Request, simulate
from fitladder.study.plan import StudySampling, Workload
from fitladder.study.warmup import GroupedAdmission, warmup_runs

WORKLOAD = Workload(
    prompt_tokens=(978, 990, 981), sampled_tokens=650, warmup_tokens=32, first_token_id=5, last_token_id=900
)
SAMPLING = StudySampling(temperature=0.6, top_p=0.95, top_k=20, run_seed=2701)


@pytest.mark.parametrize("group", [1, 2, 5])
def test_a_staircase_meets_every_width_up_and_down(group: int) -> None:
    width, tokens = 20, 28
    run = simulate(
        [Request(50, tokens)] * width,
        Pool(1000, 16),
        max_num_seqs=width,
        max_num_batched_tokens=4096,
        policy=GroupedAdmission(group, width),
    )
    steps = dict(run.width_steps)
    assert set(steps) == set(range(group, width + 1, group))
    assert all(steps[one] == 2 for one in steps if one < width)  # once while it grows, once while it shrinks
    assert run.steps == width // group - 1 + tokens


def test_stairs_meet_what_kernels_are_compiled_for() -> None:
    width = 28
    runs = warmup_runs(WORKLOAD, SAMPLING, width)
    assert {one.policy.group for one in runs} == {1, 2, 16}
    lengths = [[len(request.prompt_token_ids) for request in one.requests] for one in runs]
    assert lengths[0] == WORKLOAD.prompt_lengths(width)
    assert all(length % 16 == 0 for length in lengths[1])
    assert all((length + decodes) % 16 == 0 for decodes, length in enumerate(lengths[2]))
    assert all(max(one) <= 990 for one in lengths)
    assert {request.max_tokens for one in runs for request in one.requests} == {width + 8}
    assert all(len({request.seed for request in one.requests}) == width for one in runs)


def test_tiny_prompts_stay_prompts() -> None:
    tiny = WORKLOAD.model_copy(update={"prompt_tokens": (3,)})
    for one in warmup_runs(tiny, SAMPLING, 20):
        assert all(len(request.prompt_token_ids) in (1, 2, 3) for request in one.requests)
