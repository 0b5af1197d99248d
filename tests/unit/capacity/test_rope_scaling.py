"""Longest contexts as vLLM derives them: the derivation differs by release, and so does what is allowed."""

from typing import Any

import pytest

from fitladder.capacity.config_fields import Fields
from fitladder.capacity.rope_scaling import longest_context
from fitladder.capacity.vllm_rules import find_rules
from fitladder.errors import InputRefused

QWEN = {"model_type": "qwen3", "max_position_embeddings": 40_960}


def longest(config: dict[str, Any], vllm: str = "0.24") -> tuple[int, int]:
    found = longest_context(Fields(config, "config.json"), find_rules(vllm))
    return found.most_tokens, found.default_tokens


@pytest.mark.parametrize(
    ("changes", "most_024", "most_032"),
    [
        (  # rope_scaling alone: what the config says is the original length
            {"max_position_embeddings": 32_768, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
            131_072,
            32_768,
        ),
        (
            {
                "rope_parameters": {
                    "rope_type": "yarn",
                    "factor": 4.0,
                    "original_max_position_embeddings": 32_768,
                }
            },
            131_072,
            40_960,
        ),
        ({"rope_scaling": {"type": "linear", "factor": 4}}, 163_840, 163_840),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, 81_920, 81_920),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 40_960, 40_960),
        ({"rope_scaling": {"rope_type": "default"}}, 40_960, 40_960),
        ({"rope_scaling": None}, 40_960, 40_960),
        ({}, 40_960, 40_960),
        (
            {"model_type": "gemma3_text", "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
            40_960,
            40_960,
        ),
        ({"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 2.0}}}, 81_920, 81_920),
        ({"max_position_embeddings": None}, 2_048, 2_048),
        ({"max_seq_len": 8_192}, 8_192, 8_192),
    ],
)
def test_the_longest_context_follows_the_scaling(
    changes: dict[str, Any], most_024: int, most_032: int
) -> None:
    assert longest(QWEN | changes) == (most_024, most_024)
    assert longest(QWEN | changes, "0.32") == (most_032, most_032)


def test_longrope_starts_from_its_original_length_but_allows_the_config_s() -> None:
    config = {
        "model_type": "phi3",
        "max_position_embeddings": 131_072,
        "original_max_position_embeddings": 4_096,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0], "long_factor": [2.0]},
    }
    assert longest(config) == longest(config, "0.32") == (131_072, 4_096)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"rope_scaling": {"rope_type": "spiral", "factor": 2.0}}, "rope_scaling"),
        ({"rope_scaling": {"rope_type": "linear", "factor": "4"}}, "rope_scaling"),
        ({"rope_scaling": {"rope_type": "linear", "factor": -1}}, "rope_scaling"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": True}}, "rope_parameters"),
        ({"rope_scaling": "yarn"}, "rope_scaling"),
        ({"max_position_embeddings": "long"}, "max_position_embeddings"),
    ],
)
def test_odd_scalings_are_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InputRefused, match=f"field {field}:"):
        longest(QWEN | changes)
