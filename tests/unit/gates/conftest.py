"""Recorded-looking facts of the registered engines, and the arm's prompts, for every gate."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fitladder.canonical import canonical_bytes
from fitladder.gates.all_gates import PromptFacts
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment
from fitladder.registry.load import load_registry

PARAMS = Path(__file__).parents[3] / "params.yaml"
LIVE: dict[str, Any] = {  # the exact experiment's 49k rung as it ran
    "engine": "vllm",
    "engine_version": "0.24.0",
    "device": "cuda",
    "device_name": "a GPU",
    "max_model_len_tokens": 65_536,
    "max_num_seqs": 19,
    "max_num_batched_tokens": 32_768,
    "block_size_tokens": 528,
    "num_blocks": 1_947,
    "null_blocks": 1,
    "mamba_groups": 3,
    "kv_cache_size_tokens": 996_864,
    "max_concurrency": "15.2109375",
    "capture_requested": (1, 2, 4, 8, 16, 19),
    "capture_max_requested": 19,
    "capture_resolved": (1, 2, 4, 8, 16, 19),
    "graph_mode": "FULL_AND_PIECEWISE",
    "decode_graph_mode": "FULL",
    "has_full_graphs": True,
    "enforce_eager": False,
    "enable_prefix_caching": False,
    "async_scheduling": False,
    "engine_seed": 0,
    "dtype": "bfloat16",
    "requested_args": {},
    "resolved_args": {},
    "load_s": 100.0,
}


@pytest.fixture(scope="session")
def exact() -> Experiment:
    return load_registry(PARAMS).experiment("qwen35_4b_verified_macro_exact_cudagraph_rerun")


@pytest.fixture(scope="session")
def implicit() -> Experiment:
    return load_registry(PARAMS).experiment("qwen35_4b_verified_macro_capacity_fit_rerun")


@pytest.fixture
def facts() -> Callable[..., EngineFacts]:
    return lambda **changes: EngineFacts(**{**LIVE, **changes})


@pytest.fixture
def prompts() -> list[PromptFacts]:
    return [PromptFacts(f"r-{index:03d}", f"{index:064x}", 970 + index) for index in range(12)]


@pytest.fixture
def changed() -> Callable[..., Experiment]:
    """An experiment with some fields changed, dotted with two underscores: `engine__admission`."""

    def change(experiment: Experiment, **changes: Any) -> Experiment:
        plain = experiment.model_dump(mode="json")
        for name, value in changes.items():
            *parents, leaf = name.split("__")
            section = plain
            for parent in parents:
                section = section[parent]
            section[leaf] = value
        return Experiment.model_validate_json(canonical_bytes(plain))

    return change
