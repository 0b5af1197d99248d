"""The parts put together: pool from live figures or a GPU, tested widths, steps of both admissions."""

import pytest

from fitladder.capacity.block_geometry import parse_geometry
from fitladder.capacity.plan import EngineWish, check_width, predict_cache, predict_steps
from fitladder.capacity.presets import PRESETS
from fitladder.capacity.widest_batch import Cache, plan_capacity
from fitladder.errors import GateRefused, UsageError

QWEN = parse_geometry(PRESETS["qwen3.5-4b"], where="qwen3.5-4b")
WISH = EngineWish(65_536, 32_768, 0.9)
LIVE = Cache(528, 3, 1_949, 65_536)
PLAN = plan_capacity(LIVE, 990 + 49_152 + 2 + 512, max_num_batched_tokens=32_768)


def test_live_figures_win_over_a_prediction() -> None:
    assert predict_cache(QWEN, WISH, 50_656, gpu_bytes=None, blocks=1_949) == (LIVE, None)
    assert predict_cache(QWEN, WISH, 50_656, gpu_bytes=1, kv_tokens=997_888) == (LIVE, None)


def test_without_any_source_there_is_no_pool() -> None:
    with pytest.raises(UsageError, match="no pool to plan with"):
        predict_cache(QWEN, WISH, 50_656, gpu_bytes=None)


def test_a_predicted_pool_comes_with_its_parts() -> None:
    cache, memory = predict_cache(QWEN, WISH, 50_656, gpu_bytes=150_000_000_000)
    assert memory is not None
    assert cache.pool_blocks == memory.pool_blocks > 7_000


@pytest.mark.parametrize(
    ("preset", "max_total_tokens", "blocks"), [("smollm2-135m", 600, 51_690), ("lfm2-1.2b", 4_000, 650_828)]
)
def test_a_prediction_is_repeated_once_from_its_first_guess(
    preset: str, max_total_tokens: int, blocks: int
) -> None:
    geometry = parse_geometry(PRESETS[preset], where=preset)
    gpu_bytes = 24_000_000_000 if preset.startswith("smollm2") else 150_000_000_000
    cache, _ = predict_cache(geometry, WISH, max_total_tokens, gpu_bytes=gpu_bytes)
    assert cache.pool_blocks == blocks


def test_a_width_that_does_not_fit_says_how_far_and_what_does() -> None:
    with pytest.raises(
        GateRefused, match=r"^64 sequences need 3.3x the pool; 19 fit; capture list 1 2 4 8 16 19$"
    ):
        check_width(LIVE, PLAN, 64, None)
    with pytest.raises(GateRefused, match=r"^48 sequences need 2.4x the pool"):
        check_width(LIVE, PLAN, 64, 48)
    with pytest.raises(GateRefused, match="20 sequences"):
        check_width(LIVE, PLAN, 20, None)


def test_a_width_that_only_the_token_rule_promises_does_not_fit() -> None:
    short = plan_capacity(LIVE, 512, max_num_batched_tokens=32_768)
    check_width(LIVE, short, 487, None)
    with pytest.raises(GateRefused, match=r"^488 sequences need 1\.0x the pool; 487 fit"):
        check_width(LIVE, short, 488, None)
    with pytest.raises(GateRefused, match=r"^974 sequences need 2\.0x the pool"):  # by blocks, not tokens
        check_width(LIVE, short, 974, None)


def test_a_width_over_what_a_step_may_schedule_is_refused_whatever_fits() -> None:
    narrow = plan_capacity(LIVE, 512, max_num_batched_tokens=8)
    check_width(LIVE, narrow, 8, None)
    with pytest.raises(GateRefused, match=r"over what a step may schedule: got 9, need at most .*, 8"):
        check_width(LIVE, narrow, 9, None)


def test_widths_that_fit_pass() -> None:
    check_width(LIVE, PLAN, 19, None)
    check_width(LIVE, PLAN, 64, 19)


def test_spaced_admission_of_a_registered_phase() -> None:
    outlook = predict_steps(LIVE, PLAN, 990, 48)
    assert outlook.worst_case_steps == 3 * 49_666
    assert outlook.lower_bound_steps < outlook.spaced_steps < outlook.worst_case_steps * 2 // 3
    assert outlook.spaced_capture_sizes[-1] == outlook.spaced_width > 19


def test_what_fits_at_once_gains_nothing() -> None:
    outlook = predict_steps(LIVE, PLAN, 990, 19)
    assert outlook.spaced_steps == outlook.worst_case_steps == outlook.lower_bound_steps == 49_666
