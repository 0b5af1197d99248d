"""Drift: identity within a rung, each changed field named with its old and new value."""

from typing import Any

import pytest

from fitladder.errors import BindingChanged
from fitladder.ladder.drift import check_no_drift, rung_identity
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts

ENGINE = [
    ("engine_version", "0.25.0"),
    ("device_name", "another GPU"),
    ("capture_resolved", (1, 2, 4, 8, 16)),
    ("capture_requested", (1, 2, 4, 8, 16)),
    ("block_size_tokens", 272),
    ("dtype", "float16"),
    ("graph_mode", "NONE"),
    ("resolved_args", {"cache_config.block_size": 272}),
    ("requested_args", {"tensor_parallel_size": 2}),
]
RUNTIME = [
    ("python", "3.12.1"),
    ("packages", {"vllm": "0.24.0", "torch": "2.12.0"}),
    ("engine_lock_sha256", "b" * 64),
    ("device_driver", "571.0"),
    ("cuda", None),
    ("environment", {"VLLM_ENABLE_V1_MULTIPROCESSING": "1"}),
]


@pytest.mark.parametrize(("field", "value"), ENGINE)
def test_a_changed_engine_fact_is_drift(
    facts: EngineFacts, runtime: RuntimeFacts, field: str, value: Any
) -> None:
    before = rung_identity(facts, runtime)
    after = rung_identity(facts.model_copy(update={field: value}), runtime)
    with pytest.raises(BindingChanged, match=rf"49k base: engine\.{field}") as caught:
        check_no_drift(before, after, where="49k base")
    changed = [name for name in before if before.get(name) != after.get(name)]
    assert all(repr(before[name]) in str(caught.value) for name in changed)  # old values, named
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(("field", "value"), RUNTIME)
def test_a_changed_runtime_fact_is_drift(
    facts: EngineFacts, runtime: RuntimeFacts, field: str, value: Any
) -> None:
    before = rung_identity(facts, runtime)
    after = rung_identity(facts, runtime.model_copy(update={field: value}))
    with pytest.raises(BindingChanged, match=rf"runtime\.{field}"):
        check_no_drift(before, after, where="49k base")


def test_every_changed_field_is_named_with_old_and_new(facts: EngineFacts, runtime: RuntimeFacts) -> None:
    after = rung_identity(facts.model_copy(update={"engine_version": "0.25.0", "dtype": "float16"}), runtime)
    with pytest.raises(BindingChanged) as caught:
        check_no_drift(rung_identity(facts, runtime), after, where="x")
    for words in ("'0.25.0'", "'0.24.0'", "'float16'", "'bfloat16'"):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("field", "old", "new"),
    [
        ("model.revision", "8" * 40, "9" * 40),
        ("thinking_budget_tokens", 49_152, 61_440),
        ("sampling.run_seed", 2_701, 2_702),
        ("model.tokenizer_sha256", "a" * 64, "b" * 64),
        ("engine.capture_resolved", [1, 2, 19], [1, 2, 4, 19]),
        ("engine.engine_version", "0.24.0", "0.25.0"),
        ("prompts[3].rendered_sha256", "c" * 64, "d" * 64),
    ],
)
def test_any_changed_field_is_named_with_old_and_new(field: str, old: Any, new: Any) -> None:
    same = {"k": 4, field: old}
    check_no_drift(same, dict(same), where="resume")
    with pytest.raises(BindingChanged) as caught:
        check_no_drift(same, {**same, field: new}, where="resume")
    assert f"resume: {field} changed" in str(caught.value)
    assert repr(old) in str(caught.value)
    assert repr(new) in str(caught.value)


def test_a_field_that_comes_or_goes_is_drift() -> None:
    for before, after in (({"a": None}, {}), ({}, {"a": None})):
        with pytest.raises(BindingChanged, match="a changed"):
            check_no_drift(before, after, where="x")


def test_place_and_verbosity_do_not_block(facts: EngineFacts, runtime: RuntimeFacts) -> None:
    moved = facts.model_copy(
        update={"requested_args": {**facts.requested_args, "model": "/elsewhere", "disable_log_stats": True}}
    )
    quiet = runtime.model_copy(update={"environment": {**runtime.environment, "VLLM_LOGGING_LEVEL": "ERROR"}})
    check_no_drift(rung_identity(facts, runtime), rung_identity(moved, quiet), where="x")


def test_another_measured_pool_is_no_drift(facts: EngineFacts, runtime: RuntimeFacts) -> None:
    """The gates judge each start's pool; 997,888 and 996,864 tokens were both seen on one host."""
    restart_advice = facts.model_copy(
        update={
            "kv_cache_size_tokens": 997_888,
            "num_blocks": 1_949,
            "max_concurrency": "15.2265625",
            "load_s": 99.0,
            "resolved_args": {**facts.resolved_args, "cache_config.num_gpu_blocks": 1_949},
        }
    )
    check_no_drift(rung_identity(facts, runtime), rung_identity(restart_advice, runtime), where="x")


@pytest.mark.parametrize(
    "change", [{"max_num_seqs": 8}, {"capture_requested": (1, 8), "capture_resolved": (1, 8)}]
)
def test_bundles_of_different_width_are_not_equal(
    facts: EngineFacts, runtime: RuntimeFacts, change: Any
) -> None:
    with pytest.raises(BindingChanged, match="never pooled"):
        check_no_drift(
            rung_identity(facts, runtime),
            rung_identity(facts.model_copy(update=change), runtime),
            where="x",
        )
