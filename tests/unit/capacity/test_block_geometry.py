"""Block sizes and pages from configs: against the engine's own, and every odd field refused in one line."""

from typing import Any

import pytest

from fitladder.capacity.block_geometry import Geometry, parse_geometry
from fitladder.capacity.presets import PRESETS, find_preset
from fitladder.errors import InputRefused


def geometry(name: str, **changes: Any) -> Geometry:
    return parse_geometry(PRESETS[name] | changes, where="config.json")


@pytest.mark.parametrize(
    ("name", "block", "groups", "block_bytes"),
    [
        ("qwen3.5-4b", 528, 3, 17_301_504),  # as the registered history reports
        ("qwen3-next-80b-a3b", 544, 3, 13_369_344),
        ("qwen3-4b", 16, 0, 2_359_296),
        ("qwen3-8b", 16, 0, 2_359_296),
        ("llama-3.1-8b", 16, 0, 2_097_152),
        ("smollm2-135m", 16, 0, 368_640),
        ("lfm2-1.2b", 16, 2, 196_608),
    ],
)
def test_blocks_of_the_presets(name: str, block: int, groups: int, block_bytes: int) -> None:
    found = geometry(name)
    assert found.block_size_tokens() == block
    assert found.mamba_groups == groups
    assert found.block_bytes(block) == block_bytes


def test_qwen35_by_hand() -> None:
    found = geometry("qwen3.5-4b")
    assert found.state_page_bytes == 32 * 128 * 128 * 4 + 3 * 8_192 * 2 == 2_146_304
    assert found.kv_bytes_per_token == 2 * 4 * 256 * 2
    assert (found.attention_layers, found.state_layers) == (8, 24)


def test_the_block_hangs_on_the_state_dtype() -> None:
    assert geometry("qwen3.5-4b", mamba_ssm_dtype=None).block_size_tokens() == 272
    for dtype, block in (("bfloat16", 272), ("auto", 272), ("float32", 528)):
        assert parse_geometry(PRESETS["qwen3.5-4b"], where="x", ssm_dtype=dtype).block_size_tokens() == block


def test_the_cpu_build_has_blocks_of_128() -> None:
    assert geometry("smollm2-135m").block_size_tokens("cpu") == 128
    assert geometry("qwen3.5-4b").block_size_tokens("cpu") == 640


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("qwen3-4b", 4.02),
        ("qwen3-8b", 8.19),
        ("llama-3.1-8b", 8.03),
        ("qwen3-next-80b-a3b", 79.7),
        ("lfm2-1.2b", 1.17),
    ],
)
def test_parameters_are_the_published_ones(name: str, billions: float) -> None:
    assert geometry(name).parameters == pytest.approx(billions * 1e9, rel=0.005)


def test_the_text_part_of_a_multimodal_config() -> None:
    inner = {key: value for key, value in PRESETS["qwen3.5-4b"].items() if key != "dtype"}
    outer = {"model_type": "qwen3_5", "dtype": "bfloat16", "text_config": inner, "vision_config": {}}
    assert parse_geometry(outer, where="config.json") == geometry("qwen3.5-4b")


def test_older_configs_say_torch_dtype_and_leave_the_head_size_out() -> None:
    older = {k: v for k, v in PRESETS["llama-3.1-8b"].items() if k not in ("dtype", "head_dim")}
    assert parse_geometry(older | {"torch_dtype": "bfloat16"}, where="x") == geometry("llama-3.1-8b")


def test_a_mamba2_hybrid() -> None:
    config = {
        "model_type": "granitemoehybrid",
        "dtype": "bfloat16",
        "hidden_size": 2_048,
        "vocab_size": 100_352,
        "num_hidden_layers": 40,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131_072,
        "layer_types": ["attention" if i % 10 == 5 else "mamba" for i in range(40)],
        "mamba_n_heads": 64,
        "mamba_d_head": 64,
        "mamba_d_state": 128,
        "mamba_n_groups": 1,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "shared_intermediate_size": 8_192,
        "num_local_experts": 0,
    }
    found = parse_geometry(config, where="config.json")
    assert found.state_page_bytes == (64 * 64 * 128 + 3 * (4_096 + 256)) * 2
    assert found.mamba_groups == 9
    assert found.block_size_tokens() == 528


ODD = [
    ({"num_hidden_layers": None}, "num_hidden_layers"),
    ({"num_hidden_layers": 0}, "num_hidden_layers"),
    ({"num_hidden_layers": True}, "num_hidden_layers"),
    ({"num_hidden_layers": "36"}, "num_hidden_layers"),
    ({"num_hidden_layers": 36.0}, "num_hidden_layers"),
    ({"num_key_value_heads": 5}, "num_key_value_heads"),
    ({"head_dim": -1}, "head_dim"),
    ({"head_dim": None, "hidden_size": 2_561}, "head_dim"),
    ({"model_type": "mamba2"}, "model_type"),
    ({"model_type": None}, "model_type"),
    ({"dtype": "float8"}, "dtype"),
    ({"dtype": None}, "dtype"),
    ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
    ({"sliding_window": 4_096}, "sliding_window"),
    ({"layer_types": ["full_attention"]}, "layer_types"),
    ({"layer_types": ["sliding_attention"] * 36}, "layer_types"),
    ({"layer_types": [1] * 36}, "layer_types"),
    ({"kv_lora_rank": 512}, "kv_lora_rank"),
    ({"text_config": "inner"}, "text_config"),
    ({"max_position_embeddings": None}, "max_position_embeddings"),
]


@pytest.mark.parametrize(("changes", "field"), ODD, ids=[f"{field}-{i}" for i, (_, field) in enumerate(ODD)])
def test_odd_fields_are_refused_in_one_line_that_names_them(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InputRefused, match=f"config.json.*{field}") as caught:
        geometry("qwen3-4b", **changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("field", sorted(PRESETS["qwen3.5-4b"]))
def test_no_field_of_a_hybrid_may_be_missing_unless_it_has_a_default(field: str) -> None:
    config = {key: value for key, value in PRESETS["qwen3.5-4b"].items() if key != field}
    if field in ("head_dim", "num_key_value_heads", "mamba_ssm_dtype", "tie_word_embeddings"):
        parse_geometry(config, where="config.json")  # their absence has a meaning in such configs
    else:
        with pytest.raises(InputRefused, match=field):
            parse_geometry(config, where="config.json")


def test_layers_that_vllm_versions_would_group_differently_are_refused() -> None:
    kinds = ["full_attention"] * 13 + ["linear_attention"] * 19
    with pytest.raises(InputRefused, match="13 attention and 19 state layers"):
        geometry("qwen3.5-4b", layer_types=kinds)
    with pytest.raises(InputRefused, match="no attention layer"):
        geometry("qwen3.5-4b", layer_types=["linear_attention"] * 32)


def test_quantized_weights_are_not_predicted() -> None:
    found = geometry("qwen3-4b", quantization_config={"quant_method": "fp8"})
    assert found.block_size_tokens() == 16
    with pytest.raises(InputRefused, match="quantized"):
        found.weight_bytes()


def test_an_odd_state_dtype_is_refused() -> None:
    with pytest.raises(InputRefused, match="SSM state dtype"):
        parse_geometry(PRESETS["qwen3.5-4b"], where="x", ssm_dtype="float8")


def test_presets_are_found_by_name() -> None:
    assert find_preset("Qwen3.5-4B") is PRESETS["qwen3.5-4b"]
    with pytest.raises(InputRefused, match="no such model"):
        find_preset("qwen")
