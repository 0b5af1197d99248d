"""Predicted pools: the registered GPU's within a percent, and nothing where nothing is left."""

import pytest

from fitladder.capacity.block_geometry import parse_geometry
from fitladder.capacity.gpu_memory import MemoryPlan, predict_memory
from fitladder.capacity.gpus import GPU_MEMORY_BYTES, find_gpu
from fitladder.capacity.presets import PRESETS
from fitladder.errors import GateRefused, InputRefused, UsageError


def predicted(model: str, gpu: str, utilization: float = 0.9) -> MemoryPlan:
    geometry = parse_geometry(PRESETS[model], where=model)
    return predict_memory(
        geometry,
        total_bytes=find_gpu(gpu),
        gpu_memory_utilization=utilization,
        block_size_tokens=geometry.block_size_tokens(),
        max_num_batched_tokens=32_768,
        max_num_seqs=19,
        capture_sizes=6,
    )


def test_the_registered_pool_within_one_percent() -> None:
    assert predicted("qwen3.5-4b", "rtx6000ada").pool_blocks == pytest.approx(1_949, rel=0.01)


def test_the_parts_make_the_whole() -> None:
    plan = predicted("qwen3-8b", "h200")
    parts = plan.weight_bytes + plan.activation_bytes + plan.reserve_bytes + plan.kv_cache_bytes
    assert parts == plan.requested_bytes <= plan.total_bytes
    assert plan.pool_blocks == plan.kv_cache_bytes // plan.block_bytes


def test_no_room_is_refused_with_the_parts() -> None:
    with pytest.raises(
        GateRefused, match=r"no room for a KV cache: got 20\.26 GiB for 148\.40 GiB of weights"
    ):
        predicted("qwen3-next-80b-a3b", "rtx4090", 0.857)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan")])
def test_an_odd_share_is_refused(share: float) -> None:
    with pytest.raises(InputRefused, match="gpu_memory_utilization"):
        predicted("qwen3-4b", "h200", share)


def test_gpus_are_found_by_name() -> None:
    assert find_gpu("H200") == GPU_MEMORY_BYTES["h200"]
    with pytest.raises(UsageError, match="no such GPU"):
        find_gpu("abacus")
