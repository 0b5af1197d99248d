"""Longest context of a model, with its RoPE scaling, as vLLM derives it (`vllm.config.model`).

The smallest of the config's length fields, times a factor where the scaling type extends positions. YaRN
differs by release: 0.24 takes the original length times the factor, 0.32 the config's length as it stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fitladder.capacity.config_fields import Fields
from fitladder.capacity.vllm_rules import VllmRules

__all__ = ["LongestContext", "longest_context"]

LENGTH_FIELDS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length")
DEFAULT_LENGTH_TOKENS = 2_048  # vLLM's, for a config that names no length
SCALED_ALREADY = ("su", "longrope", "llama3", "deepseek_yarn", "deepseek_llama_scaling")
SCALING_TYPES = (*SCALED_ALREADY, "default", "linear", "dynamic", "yarn", "mrope", "proportional")


@dataclass(frozen=True)
class LongestContext:
    """Most tokens that --max-model-len may ask for, what vLLM takes by default, and their source."""

    most_tokens: int
    default_tokens: int
    source: str


def longest_context(fields: Fields, rules: VllmRules) -> LongestContext:
    """Longest context of a config's text part. Raises InputRefused on a scaling that is odd or unknown."""
    present = [name for name in LENGTH_FIELDS if fields.values.get(name) is not None]
    lengths = {name: fields.count(name) for name in present}
    source = min(lengths, key=lengths.__getitem__, default="vLLM's default")
    tokens: int | float = lengths.get(source, DEFAULT_LENGTH_TOKENS)
    default = None
    factor: int | float = 1
    for name, scaling in _scalings(fields):
        kind = scaling.get("rope_type", scaling.get("type", "default"))
        if kind not in SCALING_TYPES:
            raise fields.refuse(name, f"a scaling type of {', '.join(sorted(SCALING_TYPES))}")
        original = scaling.get("original_max_position_embeddings")
        original = fields.values.get("original_max_position_embeddings") or original
        if kind == "longrope" and fields.values.get("original_max_position_embeddings") is not None:
            default = fields.count("original_max_position_embeddings")
        if kind in SCALED_ALREADY or (kind == "yarn" and not rules.scales_yarn):
            continue
        factor = _number(fields, name, scaling.get("factor"), factor)
        if kind == "yarn":
            tokens = int(_number(fields, name, original, tokens))
        source = f"{source} with {kind} scaling" if factor != 1 else source
    if "gemma3" not in fields.text("model_type"):  # its positions are counted as scaled already
        tokens = int(tokens * factor)
    return LongestContext(int(tokens), min(default or int(tokens), int(tokens)), source)


def _scalings(fields: Fields) -> list[tuple[str, Mapping[str, Any]]]:
    """Scaling dictionaries with the name of their field, one a layer type where they are nested."""
    for name in ("rope_parameters", "rope_scaling"):
        value = fields.values.get(name)
        if value is None:
            continue
        if not isinstance(value, Mapping):
            raise fields.refuse(name, "an object")
        nested = [part for part in value.values() if isinstance(part, Mapping)]
        return [(name, part) for part in (nested or [value])]
    return []


def _number(fields: Fields, name: str, value: object, default: int | float) -> int | float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise fields.refuse(name, "positive numbers as factor and original length")
    return value
