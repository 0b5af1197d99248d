"""An open experiment, outcomes by hand, and facts of one engine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fitladder.canonical import canonical_sha256, sha256_bytes
from fitladder.ladder.outcome import interrupted, judged_outcome
from fitladder.records.bundle_key import BundleKey
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts
from fitladder.records.experiment import Experiment, Phase
from fitladder.records.outcome import PhaseOutcome
from fitladder.registry.load import load_registry

PARAMS = Path(__file__).parents[3] / "params.yaml"
FULL = {"probe": 48, "base": 144, "designed": 144}


@pytest.fixture(scope="session")
def experiment() -> Experiment:
    registered = load_registry(PARAMS).experiment("qwen35_4b_verified_macro_exact_cudagraph_rerun")
    return registered.model_copy(update={"state": "open"})


@pytest.fixture(scope="session")
def key(experiment: Experiment) -> Callable[[int, Phase], BundleKey]:
    return lambda budget, phase: BundleKey(
        experiment_id=experiment.experiment_id, thinking_budget_tokens=budget, phase=phase
    )


@pytest.fixture(scope="session")
def audit(key: Any) -> Callable[..., dict[str, Any]]:
    """A termination audit's decisive part, by the names of its fields: adequate unless counts are given."""

    def build(budget: int, phase: Phase, adequate: bool = True, **changes: Any) -> dict[str, Any]:
        return {
            "bundle": key(budget, phase),
            "expected_samples": FULL[phase],
            "samples": FULL[phase],
            "unresolved_cap_contacts": 0 if adequate else FULL[phase],
            "answer_limit_contacts": 0,
            "periodic_loop_contacts": 0,
            "adequate": adequate,
            **changes,
        }

    return build


@pytest.fixture(scope="session")
def judge(experiment: Experiment) -> Callable[..., PhaseOutcome]:
    """`judged_outcome` of a decisive part as `audit` builds it."""

    def outcome(found: dict[str, Any], receipt_sha256: str = "a" * 64, preemptions: int = 0) -> PhaseOutcome:
        counts = {name: found[name] for name in found if name not in ("bundle", "warnings")}
        return judged_outcome(
            experiment,
            found["bundle"],
            **counts,
            preemptions=preemptions,
            receipt_sha256=receipt_sha256,
            audit_sha256=canonical_sha256({**found, "bundle": str(found["bundle"])}),
        )

    return outcome


@pytest.fixture(scope="session")
def done(judge: Any, audit: Any) -> Callable[..., PhaseOutcome]:
    def build(budget: int, phase: Phase, adequate: bool = True, **changes: Any) -> PhaseOutcome:
        receipt = sha256_bytes(f"{budget} {phase}".encode())
        return judge(audit(budget, phase, adequate, **changes), receipt_sha256=receipt)

    return build


@pytest.fixture(scope="session")
def begun(key: Any) -> Callable[[int, Phase], PhaseOutcome]:
    return lambda budget, phase: interrupted(key(budget, phase))


@pytest.fixture
def facts() -> EngineFacts:
    return EngineFacts(
        engine="vllm",
        engine_version="0.24.0",
        device="cuda",
        device_name="a GPU",
        max_model_len_tokens=65_536,
        max_num_seqs=19,
        max_num_batched_tokens=32_768,
        block_size_tokens=528,
        num_blocks=1_947,
        null_blocks=1,
        mamba_groups=3,
        kv_cache_size_tokens=996_864,
        max_concurrency="15.2109375",
        capture_requested=(1, 2, 4, 8, 16, 19),
        capture_max_requested=19,
        capture_resolved=(1, 2, 4, 8, 16, 19),
        graph_mode="FULL_AND_PIECEWISE",
        decode_graph_mode="FULL",
        has_full_graphs=True,
        enforce_eager=False,
        enable_prefix_caching=False,
        async_scheduling=False,
        engine_seed=0,
        dtype="bfloat16",
        requested_args={"model": "/models/one", "tensor_parallel_size": 1, "disable_log_stats": False},
        resolved_args={"cache_config.block_size": 528, "cache_config.num_gpu_blocks": 1_947},
        load_s=100.0,
    )


@pytest.fixture
def runtime() -> RuntimeFacts:
    return RuntimeFacts(
        python="3.11.9",
        platform="linux",
        packages={"vllm": "0.24.0", "torch": "2.11.0"},
        pip_check=(),
        engine_lock_sha256="a" * 64,
        device_driver="570.1",
        cuda="13.0",
        environment={"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_LOGGING_LEVEL": "INFO"},
    )
