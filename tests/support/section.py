"""A small experiment's section as params.yaml holds it: the one that every test experiment starts from."""

from typing import Any

__all__ = ["small_section"]


def small_section(**groups: dict[str, Any]) -> dict[str, Any]:
    """The section of an open CPU experiment of two rungs; rates as text.

    `groups` change fields of one group each (`engine={"args": {...}}`); what a caller replaces whole, such as
    `rungs` or `data`, it sets in the result.
    """
    section: dict[str, Any] = {
        "state": "open",
        "predecessor": None,
        "review": "independent",
        "model": {
            "name": "a/model",
            "revision": None,
            "folder_sha256": None,
            "tokenizer_sha256": None,
            "dtype": "float32",
        },
        "engine": {
            "backend": "vllm-cpu",
            "vllm_version": "1",
            "max_model_len_tokens": 512,
            "max_num_batched_tokens": 1024,
            "tensor_parallel_size": 1,
            "engine_seed": 0,
            "enforce_eager": True,
            "enable_prefix_caching": False,
            "async_scheduling": False,
            "gpu_memory_utilization": None,
            "kv_cache_memory_bytes": None,
            "num_gpu_blocks_override": None,
            "capture": "none",
            "admission": "worst_case",
            "args": {},
            "environment": {},
        },
        "thinking": {
            "open_text": "<think>\n",
            "close_text": "</think>\n\n",
            "close_marker_token_ids": [7],
            "close_token_ids": [7, 8],
            "model_eos_token_ids": [9],
            "eos_inside_thinking": "forced_close",
        },
        "sampling": {
            "temperature": 0.6,
            "top_p": 0.95,
            "top_k": 20,
            "answer_max_tokens": 24,
            "run_seed": 2701,
        },
        "records_per_arm": 2,
        "longest_prompt_tokens": 120,
        "probe_k": 2,
        "matrix_k": 3,
        "rungs": [rung(64, 4), rung(96, 4)],
        "kv_rule": "both",
        "loop_rule": {
            "tail_tokens": 32,
            "max_period_tokens": 16,
            "min_match_rate": "0.99",
            "min_budget_tokens": 32,
        },
        "thresholds": {
            "unresolved_rate_below": "0.05",
            "answer_limit_rate_below": "0.05",
            "loop_rate_at_most": "0.25",
        },
        "semantics": {
            "min_parse_rate": "0.5",
            "min_macro_reuse_tasks": 2,
            "designed_reuse_oracle_not_below_base": True,
        },
        "data": {},
        "artifacts": {"root": None, "environment_override": None, "forbidden_roots": []},
    }
    for name, changes in groups.items():
        section[name] = section[name] | changes
    return section


def rung(budget_tokens: int, width: int, deadline_s: int = 120) -> dict[str, Any]:
    """One rung without a capture list."""
    return {
        "thinking_budget_tokens": budget_tokens,
        "max_num_seqs": width,
        "capture_sizes": None,
        "deadline_s": deadline_s,
    }
