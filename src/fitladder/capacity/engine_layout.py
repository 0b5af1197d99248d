"""Cache layout of a config under an engine's arguments: block size, pages, groups. No torch, no vLLM.

Follows vLLM from `update_block_size_for_backend` (a hybrid's attention block grows until its page holds a
state) to `get_kv_cache_groups`, with the attention backends of a Hopper GPU. Integers with units throughout.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import lcm
from typing import Any, Literal

from fitladder.capacity.cache_families import CACHE_FAMILIES, CacheFamily
from fitladder.capacity.config_fields import DTYPE_BYTES, Fields, read_dtype_bytes, read_text_fields
from fitladder.capacity.kv_groups import group_layers
from fitladder.capacity.kv_specs import CacheLayout, CacheSpec
from fitladder.capacity.recurrent_states import STATE_SHAPES
from fitladder.capacity.vllm_rules import VllmRules
from fitladder.errors import InputRefused

__all__ = ["CacheDtype", "EngineArguments", "lay_out_cache"]

CacheDtype = Literal["auto", "fp8"]

KERNEL_BLOCK_TOKENS = {"cuda": 16, "cpu": 128}  # smallest block of the attention kernels, and the default
FLASHMLA_BLOCK_TOKENS = 64  # the default where FlashMLA serves the latent cache: fp8, or sparse
FP8_LATENT_SCALE_ELEMENTS = INDEX_SCALE_ELEMENTS = 128
MAMBA1_CHUNK_TOKENS = 2_048  # vLLM's, for models without chunks of their own
LARGEST_BLOCK_TOKENS = 1 << 20


@dataclass(frozen=True)
class EngineArguments:
    """The arguments of an engine that its cache layout depends on; None is what vLLM takes by default."""

    rules: VllmRules
    max_model_len_tokens: int
    max_num_batched_tokens: int
    tensor_parallel_size: int = 1
    cache_dtype: CacheDtype = "auto"
    block_size_tokens: int | None = None
    prefix_caching: bool | None = None
    ssm_dtype: str | None = None
    platform: Literal["cuda", "cpu"] = "cuda"


def lay_out_cache(config: Mapping[str, Any], arguments: EngineArguments, *, where: str) -> CacheLayout:
    """Layout of a config.json (a multimodal one's text part).

    Raises InputRefused naming the field that is missing, odd, of a kind that is not modelled, or that vLLM
    refuses at this tensor parallel size.
    """
    outer, fields = read_text_fields(config, where)
    family = _family(fields, arguments.rules)
    ranks = arguments.tensor_parallel_size
    block = arguments.block_size_tokens
    if block is not None and not (1 <= block <= LARGEST_BLOCK_TOKENS and block % 16 == 0):
        raise InputRefused("--block-size", got=block, need="a multiple of 16")
    dtype_bytes = read_dtype_bytes(outer, fields)
    cache_bytes = 1 if _cache_is_fp8(outer, arguments) else dtype_bytes
    _check_weight_blocks(outer, fields, arguments)
    layers = family.pattern(fields)
    has_attention = any(kind != "state" and count for kind, count in layers.items())
    token_bytes = _token_bytes(fields, family, ranks, cache_bytes) if has_attention else 0
    state_bytes = _state_bytes(fields, family, arguments, dtype_bytes) if layers.get("state") else 0
    mode = _state_mode(family, arguments)
    size = _default_block(family, arguments, fp8=cache_bytes == 1)
    if has_attention and state_bytes:
        size = _block_that_holds_a_state(fields, size, token_bytes, state_bytes, mode)
    page = size * token_bytes
    specs: dict[CacheSpec, int] = {}
    for kind, count in layers.items():
        if not count:
            continue
        if kind == "state":
            blocks = _blocks_of_states(family, arguments.rules, mode)
            state_size = arguments.max_model_len_tokens if mode == "none" else size
            spec = CacheSpec("state", state_size, max(page, state_bytes), state_blocks=blocks)
        elif kind == "full":
            spec = CacheSpec("latent" if family.latent else "full", size, page)
            if family.sparse:
                specs[CacheSpec("sparse_index", size, size * _index_bytes(fields))] = count
        else:
            reach = "sliding_window" if kind == "sliding" else "attention_chunk_size"
            more = arguments.rules.cohere2_window_more_tokens if family.wider_window else 0
            spec = CacheSpec(kind, size, page, reach_tokens=fields.count(reach) + more)
        specs[spec] = count
    in_flight = arguments.rules.steps_in_flight * arguments.max_num_batched_tokens
    return CacheLayout(group_layers(specs, arguments.rules), in_flight)


def _family(fields: Fields, rules: VllmRules) -> CacheFamily:
    model_type = fields.text("model_type")
    if model_type not in CACHE_FAMILIES:
        known = ", ".join(sorted(CACHE_FAMILIES))
        raise fields.refuse("model_type", f"one of {known}", do="ask vLLM itself: --exact")
    family = CACHE_FAMILIES[model_type]
    if fields.values.get("kv_lora_rank") is not None and not family.latent:
        raise fields.refuse("kv_lora_rank", "no latent attention in this family", do="ask vLLM: --exact")
    if fields.values.get("index_topk") is not None and not family.sparse:
        raise fields.refuse("index_topk", "no sparse index in this family", do="ask vLLM: --exact")
    if rules.release in family.unheld:
        raise fields.refuse(
            "model_type",
            f"another release than {rules.release}, whose own code could not build it to compare with",
            do="give --vllm-version, or ask vLLM: --exact",
        )
    return family


def _token_bytes(fields: Fields, family: CacheFamily, ranks: int, cache_bytes: int) -> int:
    """Bytes that one token takes in one attention layer of one rank."""
    heads = fields.count("num_attention_heads")
    if heads % ranks:
        raise fields.refuse("num_attention_heads", f"a multiple of the tensor parallel size {ranks}")
    if family.latent:
        rank, rotary = fields.count("kv_lora_rank"), fields.count("qk_rope_head_dim")
        if family.sparse and cache_bytes == 1:  # fp8 with its scales, and the rotary part in two bytes
            return rank + rank // FP8_LATENT_SCALE_ELEMENTS * 4 + rotary * 2
        return (rank + rotary) * cache_bytes
    kv_heads = fields.count("num_key_value_heads", default=heads)
    if heads % kv_heads:
        raise fields.refuse("num_key_value_heads", f"a divisor of num_attention_heads {heads}")
    if kv_heads % ranks and ranks % kv_heads:
        raise fields.refuse(
            "num_key_value_heads", f"a multiple or a divisor of the tensor parallel size {ranks}"
        )
    hidden = fields.count("hidden_size")
    if fields.values.get("head_dim") is None and hidden % heads:
        raise fields.refuse("head_dim", "a head size: hidden_size is no multiple of num_attention_heads")
    width = fields.count("head_dim", default=hidden // heads)
    return 2 * max(1, kv_heads // ranks) * width * cache_bytes


def _index_bytes(fields: Fields) -> int:
    """Bytes a token of a sparse index: its key in fp8, and a four-byte scale for every so many elements."""
    width = fields.count("index_head_dim")
    return width + width // INDEX_SCALE_ELEMENTS * 4


def _check_weight_blocks(outer: Fields, fields: Fields, arguments: EngineArguments) -> None:
    """Experts quantized in blocks must split into whole ones where vLLM does not pad them."""
    quantization = outer.values.get("quantization_config")
    blocks = quantization.get("weight_block_size") if isinstance(quantization, Mapping) else None
    if not arguments.rules.checks_weight_blocks or not isinstance(blocks, list) or not blocks:
        return
    field = "moe_intermediate_size" if fields.values.get("moe_intermediate_size") else "intermediate_size"
    width, ranks = fields.count(field), arguments.tensor_parallel_size
    if type(blocks[0]) is not int or blocks[0] < 1 or width % (ranks * blocks[0]):
        raise fields.refuse(field, f"whole blocks of {blocks[0]} weights on each of {ranks} ranks")


def _state_bytes(fields: Fields, family: CacheFamily, arguments: EngineArguments, dtype_bytes: int) -> int:
    if family.state is None:
        raise fields.refuse("layer_types", "no layers with states in this family")
    shape = STATE_SHAPES[family.state](fields, arguments.tensor_parallel_size)
    registered = family.ssm_dtype
    if family.ssm_dtype_field is not None:
        registered = fields.text(family.ssm_dtype_field, default=registered)
    name = arguments.ssm_dtype or registered
    if name != "auto" and name not in DTYPE_BYTES:
        raise InputRefused(
            f"{fields.where}: SSM state dtype", got=repr(name), need=f"auto, {', '.join(DTYPE_BYTES)}"
        )
    return shape.page_bytes(dtype_bytes, DTYPE_BYTES.get(name, dtype_bytes))


def _state_mode(family: CacheFamily, arguments: EngineArguments) -> Literal["none", "align", "all"]:
    """Which states a request keeps: its last, those at block borders in use, or one for every block."""
    wanted = arguments.prefix_caching
    if wanted is None:
        wanted = arguments.rules.hybrids_cache_prefixes and family.state != "mamba2_alone"
    if not wanted:
        return "none"
    return "all" if arguments.rules.keeps_every_state and family.keeps_every_state else "align"


def _blocks_of_states(family: CacheFamily, rules: VllmRules, mode: str) -> int:
    if mode == "align":
        return 2 + (rules.mamba2_checkpoint_blocks if family.checkpoints else 0)
    return 0 if mode == "all" else 1


def _default_block(family: CacheFamily, arguments: EngineArguments, *, fp8: bool) -> int:
    if family.sparse and arguments.block_size_tokens not in (None, FLASHMLA_BLOCK_TOKENS):
        raise InputRefused(
            "--block-size",
            got=arguments.block_size_tokens,
            need=f"{FLASHMLA_BLOCK_TOKENS} with sparse latent attention",
        )
    if family.sparse or (family.latent and fp8):
        return arguments.block_size_tokens or FLASHMLA_BLOCK_TOKENS
    return arguments.block_size_tokens or KERNEL_BLOCK_TOKENS[arguments.platform]


def _block_that_holds_a_state(
    fields: Fields, kernel_tokens: int, token_bytes: int, state_bytes: int, mode: str
) -> int:
    """Tokens of an attention block whose page is at least one state's."""
    step = kernel_tokens
    if mode == "all":
        named = fields.count("chunk_size", default=MAMBA1_CHUNK_TOKENS)
        chunk = fields.count("mamba_chunk_size", default=named)
        step = lcm(chunk, kernel_tokens)
    return max(kernel_tokens, -(-state_bytes // (step * token_bytes)) * step)


def _cache_is_fp8(outer: Fields, arguments: EngineArguments) -> bool:
    """Whether the cache holds fp8: asked for, or declared by the checkpoint where nothing is asked."""
    if arguments.cache_dtype == "fp8":
        return True
    quantization = outer.values.get("quantization_config")
    if not isinstance(quantization, Mapping):
        return False
    return _declared_fp8(outer, quantization)


def _declared_fp8(outer: Fields, quantization: Mapping[str, Any]) -> bool:
    """What a checkpoint says of its cache: vLLM takes modelopt's `kv_cache_quant_algo` for its dtype."""
    nested = quantization.get("quantization")
    parts = [part for part in (nested, quantization) if isinstance(part, Mapping)]
    if any(part.get("kv_cache_scheme") is not None for part in parts):
        raise outer.refuse(
            "quantization_config", "no kv_cache_scheme: not modelled", do="--kv-cache-dtype or --exact"
        )
    declared = [part["kv_cache_quant_algo"] for part in parts if part.get("kv_cache_quant_algo") is not None]
    if not declared:
        return False
    if str(declared[0]).upper() != "FP8":
        raise outer.refuse("quantization_config", f"kv_cache_quant_algo FP8 or none, not {declared[0]}")
    return str(quantization.get("quant_method", "")).startswith("modelopt")
