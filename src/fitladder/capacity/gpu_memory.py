"""Blocks of a GPU's pool, predicted: its share of the memory, less weights, activations and a reserve.

vLLM measures the last two by a profiling run; here they come from a hand count of the widest row and a
small table of constants. Pure; a live engine's own number of blocks always wins.
"""

import math
from dataclasses import dataclass

from fitladder.capacity.block_geometry import Geometry
from fitladder.errors import GateRefused, InputRefused

__all__ = ["RESERVE", "MemoryPlan", "Reserve", "predict_memory"]

_MIB = 1 << 20


@dataclass(frozen=True)
class Reserve:
    """What a process holds besides weights and activations. Calibrated, not derived.

    outside_torch_bytes: CUDA context growth, libraries, compiled kernels. graph_base_bytes and
    graph_bytes_per_size: vLLM's estimate of its CUDA graphs. sampler_copies: float32 rows of the vocabulary
    alive at once in sampling.
    """

    outside_torch_bytes: int
    graph_base_bytes: int
    graph_bytes_per_size: int
    sampler_copies: int


# Predicts 1,947 blocks of 528 tokens for the registered 48 GB GPU, which reported 1,949, 1,947 and 1,944.
RESERVE = Reserve(
    outside_torch_bytes=320 * _MIB,
    graph_base_bytes=64 * _MIB,
    graph_bytes_per_size=12 * _MIB,
    sampler_copies=6,
)


@dataclass(frozen=True)
class MemoryPlan:
    """Where the requested share of a GPU goes, and how many blocks are left."""

    total_bytes: int
    requested_bytes: int
    weight_bytes: int
    activation_bytes: int
    reserve_bytes: int
    kv_cache_bytes: int
    block_bytes: int
    pool_blocks: int


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 30):.2f} GiB"


def predict_memory(
    geometry: Geometry,
    *,
    total_bytes: int,
    gpu_memory_utilization: float,
    block_size_tokens: int,
    max_num_batched_tokens: int,
    max_num_seqs: int,
    capture_sizes: int,
    block_bytes: int | None = None,
    reserve: Reserve = RESERVE,
) -> MemoryPlan:
    """Predicted pool of an engine with these arguments; `capture_sizes` counts its captured graphs.

    block_bytes: bytes of one block over all layers, where they are not the geometry's own.

    Raises GateRefused where nothing is left for the cache, InputRefused on a share outside (0, 1].
    """
    if not 0 < gpu_memory_utilization <= 1:
        raise InputRefused(
            "gpu_memory_utilization", got=gpu_memory_utilization, need="a share above 0, at most 1"
        )
    requested = math.ceil(total_bytes * gpu_memory_utilization)
    weights = geometry.weight_bytes()
    forward = max_num_batched_tokens * geometry.row_elements * geometry.dtype_bytes
    sampling = max_num_seqs * geometry.vocab_size * 4 * reserve.sampler_copies
    activations = max(forward, sampling)
    graphs = reserve.graph_base_bytes + reserve.graph_bytes_per_size * capture_sizes if capture_sizes else 0
    held = reserve.outside_torch_bytes + graphs
    left = requested - weights - activations - held
    block = geometry.block_bytes(block_size_tokens) if block_bytes is None else block_bytes
    if left < 2 * block:
        raise GateRefused(
            "no room for a KV cache",
            got=f"{_gib(requested)} for {_gib(weights)} of weights and {_gib(activations + held)} more",
            need="two blocks beside them",
        )
    return MemoryPlan(total_bytes, requested, weights, activations, held, left, block, left // block)
