"""A layout that another process states, as one line of JSON: read strictly, and recounted.

The engine environment lays a cache out by vLLM's own code and writes groups and blocks; what is read here is
a `CacheLayout` whose own counting gives the blocks that vLLM counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from fitladder.capacity.kv_specs import CacheGroup, CacheLayout, CacheSpec, SpecKind
from fitladder.errors import EngineFailed

__all__ = ["StatedLayout", "parse_layout"]

FIGURES = ("layers", "block_tokens", "page_bytes", "bytes_per_block", "reach_tokens", "state_blocks")


@dataclass(frozen=True)
class StatedLayout:
    """What vLLM says of one model: release, longest context, layout, and bytes of all ranks' parameters."""

    vllm: str
    max_model_len_tokens: int
    layout: CacheLayout
    parameter_bytes: int


def parse_layout(stated: Mapping[str, Any]) -> StatedLayout:
    """Read a result of `fitladder.engine.child.kv_oracle` that refuses nothing.

    Raises EngineFailed where a figure is missing or odd, or where the blocks of a length differ from what
    the groups give.
    """
    groups = stated.get("groups")
    if not isinstance(groups, list) or not groups:
        raise _odd("groups", groups)
    layout = CacheLayout(tuple(_group(group) for group in groups), _figure(stated, "in_flight_tokens"))
    if layout.block_bytes != _figure(stated, "block_bytes"):
        raise _odd("block_bytes", stated["block_bytes"], str(layout.block_bytes))
    blocks = stated.get("blocks")
    if not isinstance(blocks, dict):
        raise _odd("blocks", blocks)
    for length, by_group in blocks.items():
        if list(layout.blocks_by_group(int(length))) != by_group:
            raise _odd(f"blocks of {length} tokens", by_group, str(layout.blocks_by_group(int(length))))
    version = stated.get("vllm")
    if not isinstance(version, str):
        raise _odd("vllm", version)
    return StatedLayout(
        version, _figure(stated, "max_model_len_tokens"), layout, _figure(stated, "parameter_bytes")
    )


def _group(group: Mapping[str, Any]) -> CacheGroup:
    kind: Any = group.get("kind")
    if kind not in get_args(SpecKind):
        raise _odd("kind", kind, f"one of {', '.join(get_args(SpecKind))}")
    layers, block, page, whole, reach, states = (_figure(group, name) for name in FIGURES)
    return CacheGroup(CacheSpec(kind, block, page, reach, states), layers, whole)


def _figure(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    if type(value) is not int or value < 0:
        raise _odd(name, value)
    return value


def _odd(name: str, got: object, need: str = "a figure that fits the others") -> EngineFailed:
    return EngineFailed(f"vLLM's layout: {name}", got=repr(got)[:80], need=need)
