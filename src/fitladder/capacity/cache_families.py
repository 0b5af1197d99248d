"""What each layer of a model caches, by family: a family is one line of data.

Layer patterns follow vLLM's model classes, not the config alone: gpt-oss ignores `layer_types` there, and
Qwen configs have a window only where they say that they use it.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from fitladder.capacity.config_fields import Fields

__all__ = ["CACHE_FAMILIES", "CacheFamily", "LayerKind"]

LayerKind = Literal["full", "sliding", "chunked", "state"]
Pattern = Callable[[Fields], Mapping[LayerKind, int]]

DEFAULT_INTERVAL = 4  # every fourth layer is full attention where the config does not say
GEMMA3_INTERVAL = 6
NEMOTRON_LETTERS: dict[str, LayerKind | None] = {"M": "state", "*": "full", "-": None, "E": None}
UNBUILT_BY_024 = frozenset({"0.24"})  # its classes fail on the configs that current transformers reads


@dataclass(frozen=True)
class CacheFamily:
    """How a family's layers cache.

    pattern: layers of each kind. state: the shape of its recurrent states (see `STATE_SHAPES`).
    latent: attention caches one vector a token (MLA). sparse: every layer has an index cache, too.
    keeps_every_state: its vLLM class can keep a state for every block. checkpoints: its states are Mamba2's.
    ssm_dtype_field: the config's field that its class reads the SSM dtype from; ssm_dtype: what it takes
    without. wider_window: see `cohere2_window_more_tokens`. unheld: releases that could not build it.
    """

    pattern: Pattern
    state: str | None = None
    latent: bool = False
    sparse: bool = False
    keeps_every_state: bool = False
    checkpoints: bool = False
    ssm_dtype_field: str | None = None
    ssm_dtype: str = "auto"
    wider_window: bool = False
    unheld: frozenset[str] = frozenset()


def _layers(fields: Fields) -> int:
    return fields.count("num_hidden_layers")


def _named(fields: Fields, kinds: Mapping[str, LayerKind]) -> Counter[LayerKind] | None:
    """Layers by `layer_types`, None where the config has none. Raises InputRefused on another name."""
    names = fields.names("layer_types", _layers(fields))
    if names is None:
        return None
    if unknown := sorted(set(names) - set(kinds)):
        raise fields.refuse("layer_types", f"only {', '.join(sorted(kinds))}, not {', '.join(unknown)}")
    return Counter(kinds[name] for name in names)


def _every(fields: Fields, interval: int, rare: LayerKind, common: LayerKind) -> Counter[LayerKind]:
    """The last of every `interval` layers is rare."""
    layers = _layers(fields)
    return Counter({rare: layers // interval, common: layers - layers // interval})


def _uniform(fields: Fields) -> Mapping[LayerKind, int]:
    """All layers alike: a window where the config has one and no full layers, else full attention."""
    named = _named(fields, {"full_attention": "full", "sliding_attention": "sliding"})
    if named is not None and len(named) > 1:
        raise fields.refuse("layer_types", "one type of layer in this family")
    if named is not None:
        return named
    return Counter({"full" if fields.values.get("sliding_window") is None else "sliding": _layers(fields)})


def _window_if_used(fields: Fields) -> Mapping[LayerKind, int]:
    """Full attention; a config that uses its window is refused, for vLLM applies it to all layers or none."""
    if fields.flag("use_sliding_window", False) and fields.values.get("sliding_window") is not None:
        raise fields.refuse("use_sliding_window", "false: windows are not modelled for this family")
    named = _named(fields, {"full_attention": "full"})
    return named or Counter({"full": _layers(fields)})


def _full(fields: Fields) -> Mapping[LayerKind, int]:
    return Counter({"full": _layers(fields)})


def _windowed_by_type(fields: Fields) -> Mapping[LayerKind, int]:
    named = _named(fields, {"full_attention": "full", "sliding_attention": "sliding"})
    if named is None:
        raise fields.refuse("layer_types", f"the {_layers(fields)} layers by type")
    return named


def _windowed_by_interval(default: int) -> Pattern:
    """By type, or else full attention in the last of every `sliding_window_pattern` layers."""

    def pattern(fields: Fields) -> Mapping[LayerKind, int]:
        named = _named(fields, {"full_attention": "full", "sliding_attention": "sliding"})
        interval = fields.count("sliding_window_pattern", default=default)
        return named or _every(fields, interval, "full", "sliding")

    return pattern


def _every_other(fields: Fields) -> Mapping[LayerKind, int]:
    return _every(fields, 2, "full", "sliding")


def _nemotron_letters(fields: Fields) -> Mapping[LayerKind, int]:
    letters = fields.text("hybrid_override_pattern")
    if len(letters) != _layers(fields) or set(letters) - set(NEMOTRON_LETTERS):
        raise fields.refuse("hybrid_override_pattern", f"{_layers(fields)} letters of M, *, - and E")
    kinds = [NEMOTRON_LETTERS[letter] for letter in letters]
    return Counter(kind for kind in kinds if kind is not None)


def _chunked_where_rotary(fields: Fields) -> Mapping[LayerKind, int]:
    layers = _layers(fields)
    rotary = fields.values.get("no_rope_layers")
    if not rotary:
        return _every(
            fields, fields.count("no_rope_layer_interval", default=DEFAULT_INTERVAL), "full", "chunked"
        )
    if not isinstance(rotary, list) or len(rotary) != layers or set(rotary) - {0, 1}:
        raise fields.refuse("no_rope_layers", f"{layers} figures, each 0 or 1")
    return Counter({"chunked": sum(rotary), "full": layers - sum(rotary)})


def _linear_by_interval(fields: Fields) -> Mapping[LayerKind, int]:
    named = _named(fields, {"full_attention": "full", "linear_attention": "state"})
    interval = fields.count("full_attention_interval", default=DEFAULT_INTERVAL)
    return named or _every(fields, interval, "full", "state")


def _mamba_by_type(fields: Fields) -> Mapping[LayerKind, int]:
    kinds: dict[str, LayerKind] = {"attention": "full", "full_attention": "full"}
    named = _named(fields, kinds | {"mamba": "state", "linear_attention": "state"})
    if named is None:
        raise fields.refuse("layer_types", f"the {_layers(fields)} layers by type")
    return named


def _convolution_by_type(fields: Fields) -> Mapping[LayerKind, int]:
    named = _named(fields, {"full_attention": "full", "conv": "state"})
    if named is None:
        raise fields.refuse("layer_types", f"the {_layers(fields)} layers by type")
    return named


def _mamba_by_period(fields: Fields) -> Mapping[LayerKind, int]:
    period, layers = fields.count("attn_layer_period"), _layers(fields)
    offset = fields.values.get("attn_layer_offset")
    if type(offset) is not int or not 0 <= offset < period:
        raise fields.refuse("attn_layer_offset", f"an integer from 0 to {period - 1}")
    full = len(range(offset, layers, period))
    return Counter({"full": full, "state": layers - full})


def _both_in_each(fields: Fields) -> Mapping[LayerKind, int]:
    return Counter({"full": _layers(fields), "state": _layers(fields)})


def _states_alone(fields: Fields) -> Mapping[LayerKind, int]:
    return Counter({"state": _layers(fields)})


_MLA = CacheFamily(_full, latent=True)
_QWEN35 = CacheFamily(_linear_by_interval, "gated_delta", ssm_dtype_field="mamba_ssm_dtype")

CACHE_FAMILIES: dict[str, CacheFamily] = {
    **dict.fromkeys(("llama", "mistral", "mixtral", "phi3", "granite"), CacheFamily(_uniform)),
    **dict.fromkeys(("qwen2", "qwen3", "qwen3_moe", "smollm3"), CacheFamily(_window_if_used)),
    **dict.fromkeys(("glm4", "glm4_moe", "minimax_m2"), CacheFamily(_full)),
    "olmo3": CacheFamily(_windowed_by_type, unheld=UNBUILT_BY_024),
    "gemma2": CacheFamily(_windowed_by_interval(2)),
    "gemma3_text": CacheFamily(_windowed_by_interval(GEMMA3_INTERVAL)),
    "cohere2": CacheFamily(_windowed_by_interval(DEFAULT_INTERVAL), wider_window=True),
    "gpt_oss": CacheFamily(_every_other),
    "llama4_text": CacheFamily(_chunked_where_rotary),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "kimi_k2"), _MLA),
    "deepseek_v32": CacheFamily(_full, latent=True, sparse=True),
    "qwen3_next": CacheFamily(_linear_by_interval, "gated_delta"),
    **dict.fromkeys(("qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"), _QWEN35),
    "granitemoehybrid": CacheFamily(
        _mamba_by_type, "mamba2", keeps_every_state=True, checkpoints=True, unheld=UNBUILT_BY_024
    ),
    "nemotron_h": CacheFamily(
        _nemotron_letters,
        "mamba2_nemotron",
        keeps_every_state=True,
        checkpoints=True,
        ssm_dtype_field="mamba_ssm_cache_dtype",
        ssm_dtype="float32",
    ),
    "lfm2": CacheFamily(_convolution_by_type, "short_convolution"),
    "falcon_h1": CacheFamily(_both_in_each, "mamba2", keeps_every_state=True, checkpoints=True),
    "jamba": CacheFamily(_mamba_by_period, "mamba1", keeps_every_state=True),
    "mamba2": CacheFamily(_states_alone, "mamba2_alone", keeps_every_state=True, checkpoints=True),
}
