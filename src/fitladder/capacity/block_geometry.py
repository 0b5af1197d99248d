"""Geometry that a model's weights and a plain cache depend on, for the families whose memory is predicted.

From a Hugging Face config alone, for tensor parallel size 1, as vLLM resolves it: layers grouped so that
every group caches equally many, and on a hybrid the attention block padded until its page holds a state.
Knows no GPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fitladder.capacity.config_fields import DTYPE_BYTES, Fields, read_dtype_bytes, read_text_fields
from fitladder.capacity.families import FAMILIES, Structure, read_attention
from fitladder.errors import InputRefused

__all__ = ["Geometry", "Platform", "parse_geometry"]

Platform = Literal["cuda", "cpu"]

DEFAULT_BLOCK_TOKENS: dict[Platform, int] = {"cuda": 16, "cpu": 128}  # a padded block is a multiple of it


@dataclass(frozen=True)
class Geometry:
    """Everything about a model that its cache and its memory depend on. Elements and bytes are a layer's."""

    model_type: str
    vocab_size: int
    dtype_bytes: int
    attention_layers: int
    state_layers: int
    kv_bytes_per_token: int
    state_page_bytes: int
    parameters: int
    row_elements: int
    max_position_tokens: int
    quantized: bool

    @property
    def group_layers(self) -> int:
        """Layers that share one block: the fewest of a kind, so that the other kind fills whole groups."""
        return min(self.attention_layers, self.state_layers or self.attention_layers)

    @property
    def mamba_groups(self) -> int:
        """Blocks that a request holds for its states, one a group."""
        return -(-self.state_layers // self.group_layers)

    def block_size_tokens(self, platform: Platform = "cuda") -> int:
        """Tokens a block: the platform's default, on a hybrid raised until a page holds a state."""
        default = DEFAULT_BLOCK_TOKENS[platform]
        return max(default, -(-self.state_page_bytes // (default * self.kv_bytes_per_token)) * default)

    def block_bytes(self, block_size_tokens: int) -> int:
        """Bytes that one block takes from the pool, over the layers that share it."""
        return block_size_tokens * self.kv_bytes_per_token * self.group_layers

    def weight_bytes(self) -> int:
        """Bytes of the weights in the model's dtype. Raises InputRefused on a quantized checkpoint."""
        if self.quantized:
            raise InputRefused(
                "weights of a quantized checkpoint are not predicted", do="give --blocks or --kv-tokens"
            )
        return self.parameters * self.dtype_bytes


def parse_geometry(config: Mapping[str, Any], *, where: str, ssm_dtype: str | None = None) -> Geometry:
    """Geometry of a config.json (a multimodal one's text part). `ssm_dtype` overrides what the config says.

    Raises InputRefused naming the field that is missing, odd, or of a kind that is not modelled.
    """
    outer, fields = read_text_fields(config, where)
    model_type = fields.text("model_type")
    if fields.values.get("kv_lora_rank") is not None:
        raise fields.refuse("kv_lora_rank", "no latent attention: it is not modelled")
    if model_type not in FAMILIES:
        raise fields.refuse("model_type", f"one of {', '.join(sorted(FAMILIES))}")
    dtype_bytes = read_dtype_bytes(outer, fields)
    structure = FAMILIES[model_type](fields)
    _check_groups(fields, structure)
    hidden, vocab = fields.count("hidden_size"), fields.count("vocab_size")
    tied = fields.flag("tie_word_embeddings", outer.flag("tie_word_embeddings", False))
    return Geometry(
        model_type=model_type,
        vocab_size=vocab,
        dtype_bytes=dtype_bytes,
        attention_layers=structure.attention_layers,
        state_layers=structure.state_layers,
        kv_bytes_per_token=read_attention(fields).kv_elements * dtype_bytes,
        state_page_bytes=_state_page_bytes(fields, structure, dtype_bytes, ssm_dtype),
        parameters=structure.parameters + hidden * vocab * (1 if tied else 2),
        row_elements=structure.row_elements,
        max_position_tokens=fields.count("max_position_embeddings"),
        quantized=outer.values.get("quantization_config") is not None,
    )


def _state_page_bytes(fields: Fields, structure: Structure, dtype_bytes: int, ssm_dtype: str | None) -> int:
    if structure.state is None:
        return 0
    registered = fields.text("mamba_ssm_dtype", default="auto")
    name = ssm_dtype or registered
    if name != "auto" and name not in DTYPE_BYTES:
        raise InputRefused(
            f"{fields.where}: SSM state dtype", got=repr(name), need=f"auto, {', '.join(DTYPE_BYTES)}"
        )
    return structure.state.page_bytes(dtype_bytes, dtype_bytes if name == "auto" else DTYPE_BYTES[name])


def _check_groups(fields: Fields, structure: Structure) -> None:
    """Attention must form one group. With fewer states than 1.5 times, grouping depends on vLLM's version."""
    attention, state = structure.attention_layers, structure.state_layers
    if not attention:
        raise InputRefused(f"{fields.where}: layers", got="no attention layer", need="a KV cache to plan")
    if state and state != attention and 2 * state < 3 * attention:
        raise InputRefused(
            f"{fields.where}: layers",
            got=f"{attention} attention and {state} state layers",
            need="as many state layers as attention layers, or at least 1.5 times as many",
        )
