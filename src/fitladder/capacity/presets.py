"""Published configs of a few models, as far as a plan reads them: the fields of their config.json.

Qwen3.5-4B is the registered history's model; its block of 528 tokens needs the float32 SSM state.
"""

from typing import Any

from fitladder.errors import InputRefused

__all__ = ["PRESETS", "find_preset"]

_GDN = {
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}


def _every_fourth_full(layers: int) -> list[str]:
    return ["full_attention" if i % 4 == 3 else "linear_attention" for i in range(layers)]


def _heads(layers: int, query: int, kv: int, head_dim: int) -> dict[str, int]:
    return {
        "num_hidden_layers": layers,
        "num_attention_heads": query,
        "num_key_value_heads": kv,
        "head_dim": head_dim,
    }


def _sizes(hidden: int, intermediate: int, vocab: int, positions: int) -> dict[str, int]:
    return {
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "vocab_size": vocab,
        "max_position_embeddings": positions,
    }


def _config(model_type: str, tied: bool, *parts: dict[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = {"model_type": model_type, "tie_word_embeddings": tied, "dtype": "bfloat16"}
    for part in parts:
        config |= part
    return config


_QWEN35 = {**_GDN, "layer_types": _every_fourth_full(32), "mamba_ssm_dtype": "float32"}
_QWEN3_NEXT = {
    **_GDN,
    "layer_types": _every_fourth_full(48),
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
}
_LFM2 = {
    "layer_types": ["full_attention" if i in (2, 5, 8, 10, 12, 14) else "conv" for i in range(16)],
    "conv_L_cache": 3,
    "block_multiple_of": 256,
    "block_auto_adjust_ff_dim": True,
}

PRESETS: dict[str, dict[str, Any]] = {
    "qwen3.5-4b": _config(
        "qwen3_5_text", True, _heads(32, 16, 4, 256), _sizes(2_560, 9_216, 248_320, 262_144), _QWEN35
    ),
    "qwen3-next-80b-a3b": _config(
        "qwen3_next", False, _heads(48, 16, 2, 256), _sizes(2_048, 5_120, 151_936, 262_144), _QWEN3_NEXT
    ),
    "qwen3-4b": _config("qwen3", True, _heads(36, 32, 8, 128), _sizes(2_560, 9_728, 151_936, 40_960)),
    "qwen3-8b": _config("qwen3", False, _heads(36, 32, 8, 128), _sizes(4_096, 12_288, 151_936, 40_960)),
    "llama-3.1-8b": _config("llama", False, _heads(32, 32, 8, 128), _sizes(4_096, 14_336, 128_256, 131_072)),
    "smollm2-135m": _config("llama", True, _heads(30, 9, 3, 64), _sizes(576, 1_536, 49_152, 8_192)),
    "lfm2-1.2b": _config("lfm2", True, _heads(16, 32, 8, 64), _sizes(2_048, 12_288, 65_536, 128_000), _LFM2),
}


def find_preset(name: str) -> dict[str, Any]:
    """The config of a preset, whatever its letters' case. Raises InputRefused naming the known ones."""
    if (config := PRESETS.get(name.lower())) is None:
        raise InputRefused("no such model", got=repr(name), need=f"a folder, or one of {', '.join(PRESETS)}")
    return config
