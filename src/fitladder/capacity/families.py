"""What each family of models holds: layers, state shapes and parameters from its config.

Shapes follow vLLM's model classes (`get_mamba_state_shape_from_config`), for tensor parallel size 1. Norms,
biases and rotary tables are left out of the parameters: together under 0.1 %.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from fitladder.capacity.config_fields import Fields

__all__ = ["FAMILIES", "Attention", "State", "Structure", "read_attention"]

GDN_CHUNK_TOKENS = 64  # vLLM's chunked kernels write one state of a layer for every so many tokens


@dataclass(frozen=True)
class Attention:
    """Heads of one attention layer."""

    query_heads: int
    kv_heads: int
    head_dim: int

    @property
    def kv_elements(self) -> int:
        """Cached elements of one token in one layer, keys and values."""
        return 2 * self.kv_heads * self.head_dim

    def parameters(self, hidden: int, gated: bool = False) -> int:
        """Weights of one layer; a gated one projects a gate beside each query."""
        queries = self.query_heads * self.head_dim
        return hidden * (queries * (2 if gated else 1) + self.kv_elements) + queries * hidden


@dataclass(frozen=True)
class State:
    """Recurrent state of one request in one layer: shapes by dtype, the first in the model's dtype."""

    convolution: tuple[int, int]
    recurrent: tuple[int, int, int] | None  # in the SSM dtype

    def page_bytes(self, dtype_bytes: int, ssm_bytes: int) -> int:
        recurrent = prod(self.recurrent) * ssm_bytes if self.recurrent else 0
        return prod(self.convolution) * dtype_bytes + recurrent


@dataclass(frozen=True)
class Structure:
    """Layers by what they cache, parameters without embeddings, and the widest live row of a forward pass."""

    attention_layers: int
    state_layers: int
    state: State | None
    parameters: int
    row_elements: int  # live elements a token at the widest point, by hand count


def read_attention(fields: Fields) -> Attention:
    """Heads of the attention layers. Raises InputRefused on fields that do not fit together."""
    heads = fields.count("num_attention_heads")
    kv_heads = fields.count("num_key_value_heads", default=heads)
    if heads % kv_heads:
        raise fields.refuse("num_key_value_heads", f"a divisor of num_attention_heads {heads}")
    if fields.values.get("head_dim") is None and fields.count("hidden_size") % heads:
        raise fields.refuse("head_dim", "a head size: hidden_size is no multiple of num_attention_heads")
    return Attention(heads, kv_heads, fields.count("head_dim", default=fields.count("hidden_size") // heads))


def _layer_kinds(fields: Fields, attention: frozenset[str], state: frozenset[str]) -> tuple[int, int]:
    """Numbers of attention and state layers from `layer_types`, each of a known name."""
    layers = fields.count("num_hidden_layers")
    kinds = fields.names("layer_types", layers)
    if kinds is None:
        raise fields.refuse("layer_types", f"the {layers} layers by type")
    known = attention | state
    if unknown := sorted(set(kinds) - known):
        raise fields.refuse("layer_types", f"only {', '.join(sorted(known))}, not {', '.join(unknown)}")
    return sum(kind in attention for kind in kinds), sum(kind in state for kind in kinds)


def _mlp(fields: Fields, intermediate: str = "intermediate_size") -> tuple[int, int]:
    """Parameters and live row of a gated MLP: gate, up and their product beside the residual."""
    hidden, wide = fields.count("hidden_size"), fields.count(intermediate)
    return 3 * hidden * wide, 2 * hidden + 3 * wide


def _experts(fields: Fields) -> tuple[int, int]:
    """Parameters and live row of a mixture of experts, with its router and shared expert."""
    hidden, wide = fields.count("hidden_size"), fields.count("moe_intermediate_size")
    shared = fields.count("shared_expert_intermediate_size", default=0)
    experts, chosen = fields.count("num_experts"), fields.count("num_experts_per_tok")
    router = experts * hidden + (hidden if shared else 0)
    row = 2 * hidden + chosen * (3 * wide + hidden) + 3 * shared
    return 3 * hidden * (experts * wide + shared) + router, row


def _dense(fields: Fields) -> Structure:
    layers = fields.count("num_hidden_layers")
    window = fields.values.get("sliding_window")
    if window is not None and fields.flag("use_sliding_window", True):
        raise fields.refuse("sliding_window", "none: sliding windows are not modelled")
    if (kinds := fields.names("layer_types", layers)) and set(kinds) != {"full_attention"}:
        raise fields.refuse("layer_types", "full_attention throughout: sliding windows are not modelled")
    mlp, row = _mlp(fields)
    each = read_attention(fields).parameters(fields.count("hidden_size")) + mlp
    return Structure(layers, 0, None, layers * each, row)


def _moe(fields: Fields) -> Structure:
    layers = fields.count("num_hidden_layers")
    experts, row = _experts(fields)
    each = read_attention(fields).parameters(fields.count("hidden_size")) + experts
    return Structure(layers, 0, None, layers * each, row)


def _gated_delta(fields: Fields) -> Structure:
    full, linear = _layer_kinds(fields, frozenset({"full_attention"}), frozenset({"linear_attention"}))
    hidden = fields.count("hidden_size")
    keys = fields.count("linear_num_key_heads") * fields.count("linear_key_head_dim")
    heads, width = fields.count("linear_num_value_heads"), fields.count("linear_value_head_dim")
    values, kernel = heads * width, fields.count("linear_conv_kernel_dim")
    mixed = 2 * keys + values
    state = State((mixed, kernel - 1), (heads, width, fields.count("linear_key_head_dim")))
    layer = hidden * (mixed + values + 2 * heads) + mixed * kernel + values * hidden
    states = heads * width * fields.count("linear_key_head_dim") // GDN_CHUNK_TOKENS
    row = 2 * hidden + 2 * mixed + 4 * values + states + 2 * heads * GDN_CHUNK_TOKENS
    mlp, mlp_row = _experts(fields) if fields.values.get("num_experts") else _mlp(fields)
    attention = read_attention(fields).parameters(hidden, gated=True)
    total = full * attention + linear * layer + (full + linear) * mlp
    return Structure(full, linear, state, total, max(row, mlp_row))


def _granite(fields: Fields) -> Structure:
    names = frozenset({"attention", "full_attention"}), frozenset({"mamba", "linear_attention"})
    full, mamba = _layer_kinds(fields, *names)
    hidden, groups = fields.count("hidden_size"), fields.count("mamba_n_groups")
    inner, heads = fields.count("mamba_expand") * hidden, fields.count("mamba_n_heads")
    size, kernel = fields.count("mamba_d_state"), fields.count("mamba_d_conv")
    mixed = inner + 2 * groups * size
    state = State((mixed, kernel - 1), (heads, fields.count("mamba_d_head"), size))
    layer = hidden * (inner + mixed + heads) + mixed * kernel + inner * hidden
    shared, row = _mlp(fields, "shared_intermediate_size")
    experts = 0
    if fields.values.get("num_local_experts"):
        experts = 3 * hidden * fields.count("intermediate_size") * fields.count("num_local_experts")
        row += fields.count("num_experts_per_tok") * (3 * fields.count("intermediate_size") + hidden)
    row = max(row, 2 * hidden + 2 * inner + mixed)
    attention = read_attention(fields).parameters(hidden)
    total = full * attention + mamba * layer + (full + mamba) * (shared + experts)
    return Structure(full, mamba, state, total, row)


def _short_convolution(fields: Fields) -> Structure:
    full, conv = _layer_kinds(fields, frozenset({"full_attention"}), frozenset({"conv"}))
    hidden, kernel = fields.count("hidden_size"), fields.count("conv_L_cache")
    wide = fields.count("intermediate_size")
    if fields.flag("block_auto_adjust_ff_dim", True):  # as the model class does: two thirds, rounded up
        multiple = fields.count("block_multiple_of", default=256)
        wide = -(-(2 * wide // 3) // multiple) * multiple
    layer = 3 * hidden * hidden + hidden * kernel + hidden * hidden
    attention = read_attention(fields).parameters(hidden)
    total = full * attention + conv * layer + (full + conv) * 3 * hidden * wide
    return Structure(full, conv, State((hidden, kernel - 1), None), total, 2 * hidden + 3 * wide)


FAMILIES: dict[str, Callable[[Fields], Structure]] = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "granite", "smollm3"), _dense),
    "qwen3_moe": _moe,
    **dict.fromkeys(
        ("qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_next"), _gated_delta
    ),
    "granitemoehybrid": _granite,
    "lfm2": _short_convolution,
}
