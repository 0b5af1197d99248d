"""The simulator against live cells, and its refusals. The reference model comparison is in tests/property."""

import pytest

from fitladder.capacity.admission import SpacedAdmission
from fitladder.capacity.pool import Pool
from fitladder.capacity.simulator import Request, SimulatedRun, simulate
from fitladder.errors import GateRefused

POOL = Pool(229, 528, 3)  # 230 blocks, one of them the null block
BASE_ARM = (978, 990, 980, 986, 974, 980, 975, 985, 987, 984, 982, 983)
CELL = [Request(BASE_ARM[i % 12], 3_072) for i in range(48)]


def run(width: int, policy: SpacedAdmission | None = None) -> SimulatedRun:
    return simulate(CELL, POOL, max_num_seqs=width, max_num_batched_tokens=32_768, policy=policy)


def test_overcommitted_live_cell_has_its_25_preemptions() -> None:
    result = run(64)
    assert result.preemptions == 25
    assert round(result.mean_width) == 24
    assert result.recomputed_tokens == 50_168
    assert (result.sampled_tokens, result.peak_blocks) == (147_456, 229)


@pytest.mark.parametrize("low", [900, 940, 990])
def test_the_25_do_not_hang_on_the_exact_prompts(low: int) -> None:
    requests = [Request(low + (37 * i) % 65, 3_072) for i in range(48)]
    assert simulate(requests, POOL, max_num_seqs=64, max_num_batched_tokens=32_768).preemptions == 25


def test_fitted_live_cell_runs_in_three_waves() -> None:
    result = run(19)
    assert (result.preemptions, result.recomputed_tokens) == (0, 0)
    assert result.steps == 3 * 3_072
    assert result.mean_width == 16
    assert result.width_steps == ((10, 3_072), (19, 6_144))


def test_spaced_admission_takes_its_planned_steps() -> None:
    policy = SpacedAdmission(POOL, [one.prompt_tokens for one in CELL], 3_072, 64, 32_768)
    result = run(64, policy)
    assert (result.preemptions, result.recomputed_tokens, result.steps) == (0, 0, 6_957)
    assert result.peak_blocks <= 229


def test_cpu_cell_comes_out_close() -> None:
    # 49 blocks of 128, 32 wide: live 28 preemptions, 8,683 recomputed over 18,436; lengths were not recorded
    requests = [Request(190 + i % 7, 384) for i in range(32)]
    needed = sum(one.prompt_tokens + one.output_tokens - 1 for one in requests)
    assert needed == pytest.approx(18_436, rel=0.01)
    result = simulate(requests, Pool(48, 128), max_num_seqs=32, max_num_batched_tokens=2_048)
    assert result.preemptions == pytest.approx(28, abs=3)
    assert result.recomputed_tokens == pytest.approx(8_683, rel=0.1)


def test_chunked_prefill_delays_what_the_step_budget_cuts() -> None:
    requests = [Request(10, 2), Request(10, 2)]
    result = simulate(requests, Pool(100, 4), max_num_seqs=2, max_num_batched_tokens=12)
    # step 1: 10 + 2 tokens; step 2: 1 + 8; step 3: the second sequence alone
    assert result.width_steps == ((1, 1), (2, 2))
    assert result.scheduled_tokens == 22


def test_nothing_to_run() -> None:
    result = simulate([], POOL, max_num_seqs=1, max_num_batched_tokens=1)
    assert (result.steps, result.mean_width, result.peak_width) == (0, 0.0, 0)


@pytest.mark.parametrize(("width", "batched"), [(0, 8), (4, 3)])
def test_an_engine_that_could_not_step_is_refused(width: int, batched: int) -> None:
    with pytest.raises(GateRefused, match="simulated engine"):
        simulate(CELL, POOL, max_num_seqs=width, max_num_batched_tokens=batched)


def test_requests_beyond_pool_or_budget_are_refused() -> None:
    with pytest.raises(GateRefused, match="exceeds the pool"):
        simulate([Request(229 * 528, 1)], POOL, max_num_seqs=1, max_num_batched_tokens=1)
    with pytest.raises(GateRefused, match="exceeds the budget"):
        simulate(CELL, POOL, max_num_seqs=1, max_num_batched_tokens=1, max_new_tokens=3_071)


class Never:
    def next_step(self, now_step: int, active: object, waiting_prompt_tokens: object) -> int | None:
        return None

    def record_end(self, ended: object) -> None:
        raise AssertionError("nothing ever started")


def test_a_policy_that_never_starts_is_no_endless_loop() -> None:
    with pytest.raises(GateRefused, match="leaves the engine idle"):
        simulate(CELL, POOL, max_num_seqs=1, max_num_batched_tokens=1_000, policy=Never())
