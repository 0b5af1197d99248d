"""What vLLM is told for one rung: all of it explicit, none of it twice."""

from pathlib import Path

import pytest

from fitladder.engine.parent.llm_arguments import build_request, llm_arguments
from fitladder.engine.request import load_request, write_request
from fitladder.errors import EngineFailed, RegistrationError
from fitladder.records.experiment import Experiment

SHA = "0" * 64


def experiment(capture="exact", **engine):
    cpu = engine.pop("backend", "vllm-cuda") == "vllm-cpu"
    values = {
        "backend": "vllm-cpu" if cpu else "vllm-cuda",
        "vllm_version": "0.24.0",
        "max_model_len_tokens": 65_536,
        "max_num_batched_tokens": 32_768,
        "tensor_parallel_size": 1,
        "engine_seed": 0,
        "enforce_eager": capture == "none",
        "enable_prefix_caching": False,
        "async_scheduling": False,
        "gpu_memory_utilization": "0.9",
        "kv_cache_memory_bytes": None,
        "num_gpu_blocks_override": None,
        "capture": capture,
        "admission": "worst_case",
        "args": {},
        "environment": {},
    } | engine
    section = {
        "experiment_id": "arguments_test",
        "state": "open",
        "predecessor": None,
        "review": "self",
        "model": {
            "name": "Qwen/Qwen3.5-4B", "revision": "8" * 40, "folder_sha256": None,
            "tokenizer_sha256": None, "dtype": "bfloat16",
        },
        "engine": values,
        "thinking": {
            "open_text": "<think>\n", "close_text": "</think>\n\n", "close_marker_token_ids": [248069],
            "close_token_ids": [248069, 271], "model_eos_token_ids": [248044],
            "eos_inside_thinking": "forced_close",
        },
        "sampling": {
            "temperature": 0.6, "top_p": 0.95, "top_k": 20, "answer_max_tokens": 512, "run_seed": 2701,
        },
        "records_per_arm": 12,
        "longest_prompt_tokens": 1060,
        "probe_k": 4,
        "matrix_k": 12,
        "rungs": [
            {
                "thinking_budget_tokens": 49_152, "max_num_seqs": 19, "deadline_s": 9000,
                "capture_sizes": [1, 2, 4, 8, 16, 19] if capture == "exact" else None,
            }
        ],
        "kv_rule": "token",
        "loop_rule": {
            "tail_tokens": 8192, "max_period_tokens": 2048, "min_match_rate": "0.99",
            "min_budget_tokens": 16_384,
        },
        "thresholds": {
            "unresolved_rate_below": "0.05", "answer_limit_rate_below": "0.05", "loop_rate_at_most": "0.25",
        },
        "semantics": {
            "min_parse_rate": "0.5", "min_macro_reuse_tasks": 2, "designed_reuse_oracle_not_below_base": True,
        },
        "data": {"tasks": SHA, "prompt_manifest": SHA},
        "artifacts": {"root": "/a", "environment_override": "ROOT", "forbidden_roots": []},
    }  # fmt: skip
    return Experiment.model_validate(section, strict=False)


def arguments(capture="exact", **engine):
    registered = experiment(capture, **engine)
    return llm_arguments(registered, registered.rungs[0], model=registered.model.name)


def test_exact_capture_asks_for_the_registered_list():
    assert arguments() == {
        "async_scheduling": False,
        "cudagraph_capture_sizes": [1, 2, 4, 8, 16, 19],
        "disable_log_stats": False,
        "dtype": "bfloat16",
        "enable_prefix_caching": False,
        "enforce_eager": False,
        "generation_config": "vllm",
        "gpu_memory_utilization": 0.9,
        "load_format": "auto",
        "max_cudagraph_capture_size": 19,
        "max_model_len": 65_536,
        "max_num_batched_tokens": 32_768,
        "max_num_seqs": 19,
        "model": "Qwen/Qwen3.5-4B",
        "revision": "8" * 40,
        "seed": 0,
        "skip_tokenizer_init": True,
        "tensor_parallel_size": 1,
    }


def test_implicit_capture_asks_for_a_maximum_only():
    told = arguments("implicit")
    assert told["max_cudagraph_capture_size"] == 19
    assert "cudagraph_capture_sizes" not in told


def test_eager_engine_asks_for_no_graphs_and_a_local_folder_for_no_revision():
    registered = experiment("none")
    told = llm_arguments(
        registered,
        registered.rungs[0],
        model="models/x",
        load_format="dummy",
        num_gpu_blocks_override=1949,
    )
    assert not {"max_cudagraph_capture_size", "cudagraph_capture_sizes", "revision"} & set(told)
    assert (told["load_format"], told["num_gpu_blocks_override"]) == ("dummy", 1949)


def test_registered_extra_arguments_are_passed_but_never_override():
    assert arguments(args={"mamba_cache_mode": "none"})["mamba_cache_mode"] == "none"
    with pytest.raises(RegistrationError, match="disable_log_stats"):
        arguments(args={"disable_log_stats": True})


def test_cpu_engine_must_prefill_whole_prompts():
    with pytest.raises(RegistrationError, match="enable_chunked_prefill"):
        arguments("none", backend="vllm-cpu")
    told = arguments("none", backend="vllm-cpu", args={"enable_chunked_prefill": False})
    assert told["enable_chunked_prefill"] is False


def test_request_file_round_trip_and_strictness(tmp_path: Path):
    registered = experiment()
    request = build_request(
        registered,
        registered.rungs[0],
        "probe",
        prompts={"b": [5, 6], "a": [7]},
        model="models/x",
        samples_path=tmp_path / "samples.parquet",
        engine_lock_path=None,
    )
    assert [record.record_id for record in request.records] == ["b", "a"]
    assert (request.k, request.key.phase) == (4, "probe")
    path = tmp_path / "request.json"
    write_request(path, request)
    assert load_request(path) == request
    path.write_text(path.read_text().replace('"k":4', '"k":true'))
    with pytest.raises(EngineFailed, match="field k"):
        load_request(path)
