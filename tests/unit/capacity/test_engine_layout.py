"""Our arithmetic against layouts that vLLM's own code gave for the same configs, release by release.

`tests/golden/vllm_layouts`: geometry fields of public models, and what the Python sources of vLLM 0.24 and
0.32 made of them on the meta device, told that the device is an H200.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from fitladder.capacity.config_fields import read_text_fields
from fitladder.capacity.engine_layout import EngineArguments, lay_out_cache
from fitladder.capacity.kv_specs import CacheLayout
from fitladder.capacity.rope_scaling import longest_context
from fitladder.capacity.vllm_rules import RELEASES, find_rules
from fitladder.errors import InputRefused

FOLDER = Path(__file__).parents[2] / "golden" / "vllm_layouts"
CONFIGS: dict[str, dict[str, Any]] = json.loads((FOLDER / "configs.json").read_text())
ROWS = [json.loads(line) for line in (FOLDER / "layouts.jsonl").read_text().splitlines()]
POOL_BYTES = 40 << 30


def layout(config: dict[str, Any], vllm: str, **arguments: Any) -> CacheLayout:
    rules = find_rules(vllm)
    longest = longest_context(read_text_fields(config, "config.json")[1], rules).default_tokens
    names = {"tp": "tensor_parallel_size", "batched": "max_num_batched_tokens", "prefix": "prefix_caching"}
    names |= {"kv_cache_dtype": "cache_dtype", "block_size": "block_size_tokens"}
    given = {"max_num_batched_tokens": 8_192} | {
        names.get(key, key): value for key, value in arguments.items()
    }
    return lay_out_cache(config, EngineArguments(rules, longest, **given), where="config.json")


def name(row: dict[str, Any]) -> str:
    return "-".join(
        [row["vllm"], row["model"], *(f"{key}={value}" for key, value in row["arguments"].items())]
    )


@pytest.mark.parametrize("row", [row for row in ROWS if "refused" not in row], ids=name)
def test_every_recorded_layout_is_vllms_own(row: dict[str, Any]) -> None:
    config = CONFIGS[row["model"]]
    found = layout(config, row["vllm"], **row["arguments"])
    longest = longest_context(read_text_fields(config, "config.json")[1], find_rules(row["vllm"]))
    groups = sorted([group.layers, group.spec.block_tokens, group.bytes_per_block] for group in found.groups)
    assert longest.default_tokens == row["max_model_len"]
    assert groups == row["groups"]
    assert found.block_bytes == row["block_bytes"]
    assert POOL_BYTES // found.block_bytes == row["num_blocks_in_40_gib"]
    for length, blocks in row["blocks"].items():
        assert sorted(found.blocks_by_group(int(length))) == blocks
        assert found.blocks_for(int(length)) == sum(blocks)


@pytest.mark.parametrize("row", [row for row in ROWS if "refused" in row], ids=name)
def test_what_vllm_refuses_is_refused_by_the_name_of_its_field(row: dict[str, Any]) -> None:
    with pytest.raises(InputRefused, match=f"field {row['refused']}"):
        layout(CONFIGS[row["model"]], row["vllm"], **row["arguments"])


def test_both_releases_and_every_recorded_family_are_held() -> None:
    assert {row["vllm"] for row in ROWS} == set(RELEASES)
    assert len(ROWS) >= 120
    assert len({row["model"] for row in ROWS}) >= 25


def test_release_names() -> None:
    assert find_rules("0.24.0").release == find_rules("0.24").release == "0.24"
    for version in ("0.25.0", "0.240", "24", "0", ""):
        with pytest.raises(InputRefused, match=r"vLLM version: .*0\.24, 0\.32"):
            find_rules(version)


def test_an_unknown_family_is_refused_by_name_and_points_to_vllm_itself() -> None:
    config = CONFIGS["qwen3-8b"] | {"model_type": "orion"}
    with pytest.raises(InputRefused, match=r"field model_type: got 'orion'.*--exact"):
        layout(config, "0.24")


@pytest.mark.parametrize(
    ("model", "changes", "field"),
    [
        ("qwen3-8b", {"kv_lora_rank": 512}, "kv_lora_rank"),
        ("qwen3-8b", {"use_sliding_window": True, "sliding_window": 4_096}, "use_sliding_window"),
        ("qwen3-8b", {"num_key_value_heads": 5}, "num_key_value_heads"),
        ("qwen3-8b", {"num_key_value_heads": True}, "num_key_value_heads"),
        ("qwen3-8b", {"head_dim": None, "hidden_size": 4_097}, "head_dim"),
        ("kimi-k2", {"index_topk": 2_048}, "index_topk"),
        ("kimi-k2", {"qk_rope_head_dim": None}, "qk_rope_head_dim"),
        ("olmo-3-7b", {"layer_types": None}, "layer_types"),
        ("olmo-3-7b", {"sliding_window": None}, "sliding_window"),
        ("llama-3.1-8b", {"layer_types": ["full_attention", "sliding_attention"] * 16}, "layer_types"),
        ("llama-4-scout-text", {"no_rope_layers": [1, 2]}, "no_rope_layers"),
        ("jamba-mini", {"attn_layer_offset": 8}, "attn_layer_offset"),
        ("qwen3-next-80b", {"linear_conv_kernel_dim": 0}, "linear_conv_kernel_dim"),
        ("mistral-7b-v0.1", {"sliding_window": "4096"}, "sliding_window"),
        ("lfm2-1.2b", {"layer_types": ["conv"] * 3}, "layer_types"),
        ("qwen3-8b", {"quantization_config": {"kv_cache_scheme": {"num_bits": 8}}}, "quantization_config"),
        (
            "qwen3-8b",
            {"quantization_config": {"quant_method": "modelopt", "kv_cache_quant_algo": "NVFP4"}},
            "quantization_config",
        ),
    ],
)
def test_an_odd_field_is_refused_in_one_line_that_names_it(
    model: str, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InputRefused, match=f"field {field}:") as caught:
        layout(CONFIGS[model] | changes, "0.32")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "arguments", "words"),
    [
        ("qwen3-8b", {"tp": 3}, "num_attention_heads"),
        ("qwen3-8b", {"tp": 16, "changes": {"num_key_value_heads": 32}}, None),
        ("qwen3-8b", {"block_size": 24}, "--block-size: got 24"),
        ("deepseek-v3.2", {"block_size": 32}, "--block-size: got 32, need 64"),
        ("qwen3.5-4b", {"ssm_dtype": "float8"}, "SSM state dtype"),
    ],
)
def test_arguments_that_cannot_be(model: str, arguments: dict[str, Any], words: str | None) -> None:
    config = CONFIGS[model] | arguments.pop("changes", {})
    if words is None:
        assert layout(config, "0.24", **arguments).groups
        return
    with pytest.raises(InputRefused, match=words):
        layout(config, "0.24", **arguments)


def test_qwen3_next_plans_from_its_interval_alone_and_its_block_shrinks_over_ranks() -> None:
    config = {key: value for key, value in CONFIGS["qwen3-next-80b"].items() if key != "layer_types"}
    blocks = [layout(config, "0.24", tp=ranks).block_size_tokens for ranks in (1, 2, 4, 8)]
    assert blocks == [544, 544, 272, 144]
    assert layout(config, "0.24", kv_cache_dtype="fp8").block_size_tokens == 1_072


def test_an_fp8_cache_leaves_the_mamba_state_alone_so_the_block_grows() -> None:
    """The 27B hybrid whose live engine reported a block of 1,568 tokens."""
    config = CONFIGS["qwen3.5-4b"] | {
        "num_hidden_layers": 64,
        "num_attention_heads": 24,
        "linear_num_value_heads": 48,
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 16,
    }
    assert layout(config, "0.24").block_size_tokens == 784
    declared = {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}
    found = layout(config | {"quantization_config": declared}, "0.24")
    assert found == layout(config, "0.24", kv_cache_dtype="fp8")
    assert (found.block_size_tokens, found.state_blocks) == (1_568, 3)
    assert found.blocks_for(24_576 + 1_060 + 2 + 512) == 20
    nested = {"quant_method": "modelopt", "quantization": {"kv_cache_quant_algo": "FP8"}}
    assert layout(config | {"quantization_config": nested}, "0.24") == found


def test_a_window_holds_one_batch_in_flight_in_024_and_two_in_032() -> None:
    old, new = (layout(CONFIGS["mistral-7b-v0.1"], vllm) for vllm in ("0.24", "0.32"))
    assert (old.in_flight_tokens, new.in_flight_tokens) == (8_192, 16_384)
    assert (old.blocks_for(65_536), new.blocks_for(65_536)) == (769, 1_281)


@pytest.mark.parametrize("model", ["olmo-3-7b", "granite-4-hybrid"])
def test_a_family_that_a_release_could_not_build_is_refused_for_it(model: str) -> None:
    assert layout(CONFIGS[model], "0.32").groups
    with pytest.raises(InputRefused, match=r"field model_type: .*another release than 0\.24"):
        layout(CONFIGS[model], "0.24")
