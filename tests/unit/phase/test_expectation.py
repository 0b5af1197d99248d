"""Expected pool and speed: the nearest record wins, and nothing is guessed where none fits."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from support import bundles as make
from support.checkout import EXPERIMENT, ROOT, ScriptedCheckout, make_scripted_checkout

from fitladder.evidence.load import Evidence, load_evidence
from fitladder.phase.expectation import ExpectedPool, expected_pool, expected_speed
from fitladder.registry.binding import bind
from fitladder.registry.load import load_registry
from fitladder.store.held_root import hold_root
from fitladder.workspace import Workspace

EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
FIT = "qwen35_4b_verified_macro_capacity_fit_rerun"
HERE = Workspace(ROOT, {})


def _registered(folder: Path, **engine: Any) -> ExpectedPool | None:
    made = make_scripted_checkout(folder / "checkout")
    made.section["engine"] |= engine
    made.register()
    return expected_pool(made.workspace(), load_evidence(made.workspace(), EXPERIMENT))


def test_a_cpu_pool_is_the_registered_one_until_an_engine_ran(tmp_path: Path) -> None:
    expected = _registered(tmp_path)
    assert expected is not None
    assert (expected.pool.num_blocks, expected.pool.block_size_tokens, expected.pool.mamba_groups) == (
        13,
        128,
        0,
    )
    assert expected.pool.kv_cache_size_tokens == 13 * 128  # vLLM counts its null block too
    assert expected.source == "13 blocks of 128 tokens, as registered"


def test_a_registered_block_size_outranks_the_backends_own(tmp_path: Path) -> None:
    expected = _registered(tmp_path, args={"enable_chunked_prefill": False, "block_size": 64})
    assert expected is not None
    assert (expected.pool.block_size_tokens, expected.pool.kv_cache_size_tokens) == (64, 13 * 64)


def test_a_pool_given_in_bytes_is_unknown_before_the_engine(tmp_path: Path) -> None:
    assert _registered(tmp_path, num_gpu_blocks_override=None, kv_cache_memory_bytes=1 << 30) is None


def test_a_recorded_engine_outranks_the_registration(probe_and_base: ScriptedCheckout) -> None:
    workspace = probe_and_base.workspace()
    evidence = load_evidence(workspace, EXPERIMENT)
    facts = evidence.begun[-1].engine
    expected = expected_pool(workspace, evidence)
    assert expected is not None
    assert (
        expected.source
        == f"{facts.num_blocks} blocks of {facts.block_size_tokens} tokens, as base@64 found it"
    )
    assert (expected.pool.num_blocks, expected.pool.kv_cache_size_tokens, expected.pool.null_blocks) == (
        facts.num_blocks,
        facts.kv_cache_size_tokens,
        facts.null_blocks,
    )


def test_the_speed_is_the_newest_phases_and_counts_no_load(probe_and_base: ScriptedCheckout) -> None:
    workspace = probe_and_base.workspace()
    evidence = load_evidence(workspace, EXPERIMENT)
    probe, base = (bundle.receipt.totals for bundle in evidence.bundles)
    seconds = (base.stage1_generation_us + base.stage2_generation_us) / 1e6
    found = expected_speed(workspace, evidence, 96)  # of another rung, since nothing nearer ran
    assert found == pytest.approx(base.sampled_tokens / seconds)
    assert found != pytest.approx(
        probe.sampled_tokens * 1e6 / (probe.stage1_generation_us + probe.stage2_generation_us)
    )


@pytest.fixture
def follow_up(tmp_path: Path) -> Evidence:
    """An experiment after EXACT that never began, in the repository's own registry."""
    here = Workspace(ROOT, {"FITLADDER_REHEARSAL_ROOT": str(tmp_path / "root")})
    empty = load_evidence(here, "smollm2_135m_cpu_rehearsal")
    update = {"experiment_id": "some_follow_up", "predecessor": EXACT}
    experiment = empty.registry.experiment(EXACT).model_copy(update=update)
    return dataclasses.replace(empty, experiment=experiment)


def _changed(evidence: Evidence, **update: Any) -> Evidence:
    return dataclasses.replace(evidence, experiment=evidence.experiment.model_copy(update=update))


def test_the_nearest_predecessors_last_pool_is_expected(follow_up: Evidence) -> None:
    expected = expected_pool(HERE, follow_up)
    assert expected is not None
    assert expected.source == f"997,888 tokens in blocks of 528, as {EXACT} recorded it"
    assert expected.pool.num_blocks is None  # nobody recorded it


def test_the_speed_is_of_the_predecessors_same_rung(follow_up: Evidence) -> None:
    assert expected_speed(HERE, follow_up, 61_440) == pytest.approx(2_951_995 / 7_422.885983)
    assert expected_speed(HERE, follow_up, 49_152) == pytest.approx(2_363_163 / 4_809.081014)
    assert expected_speed(HERE, follow_up, 1_024) is None


def test_a_predecessor_that_never_generated_at_a_rung_gives_way_to_its_own(follow_up: Evidence) -> None:
    stopped = _changed(follow_up, predecessor=FIT)  # its 61,440 stayed preflight-only
    assert expected_speed(HERE, stopped, 61_440) is None
    assert expected_speed(HERE, stopped, 49_152) == pytest.approx(2_364_643 / 5_012.451158896089)


@pytest.mark.parametrize("differs", ["model", "length"])
def test_another_model_or_length_says_nothing(follow_up: Evidence, differs: str) -> None:
    own = follow_up.experiment
    update: dict[str, Any] = {
        "model": {"model": own.model.model_copy(update={"dtype": "float32"})},
        "length": {"engine": own.engine.model_copy(update={"max_model_len_tokens": 32_768})},
    }[differs]
    stranger = _changed(follow_up, **update)
    assert expected_pool(HERE, stranger) is None
    assert expected_speed(HERE, stranger, 49_152) is None


def test_a_predecessor_of_itself_ends_the_search(follow_up: Evidence) -> None:
    itself = _changed(follow_up, experiment_id=EXACT, predecessor=EXACT)
    assert expected_pool(HERE, itself) is None


def test_the_speed_counts_both_stages(tmp_path: Path) -> None:
    made = make_scripted_checkout(tmp_path / "checkout")
    of = load_registry(made.folder / "params.yaml").experiment(EXPERIMENT)
    with hold_root(made.root, EXPERIMENT, "test") as held:
        make.complete(held, make.begin(held, of, make.key(64, "probe", EXPERIMENT), binding=bind(of)))
    evidence = load_evidence(made.workspace(), EXPERIMENT)
    tokens = evidence.bundles[0].receipt.totals.sampled_tokens
    found = expected_speed(made.workspace(), evidence, 64)
    assert found == pytest.approx(tokens / 1.2)  # 1.0 s of stage 1, 0.2 s of stage 2
