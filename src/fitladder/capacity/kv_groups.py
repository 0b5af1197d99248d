"""Layers into groups that share block tables, as vLLM forms them (`vllm.v1.core.kv_cache_utils`).

Block ids come from one pool, so every group's page must be as large: pages are unified, then layers of
one spec are cut into groups of one size. Pure; refuses what vLLM refuses.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from fitladder.capacity.kv_specs import CacheGroup, CacheSpec
from fitladder.capacity.vllm_rules import VllmRules
from fitladder.errors import InputRefused

__all__ = ["group_layers"]

WHOLE = ("full", "latent", "sparse_index")  # kinds that hold every token


def group_layers(layers: Mapping[CacheSpec, int], rules: VllmRules) -> tuple[CacheGroup, ...]:
    """Groups of a model with so many layers of each spec, in the order of the specs.

    Raises InputRefused where pages cannot be made equal.
    """
    if _hold_the_same_tokens(layers):
        first = next(iter(layers))
        pages = sum(spec.page_bytes * count for spec, count in layers.items())
        return (CacheGroup(first, sum(layers.values()), pages),)
    unified: Counter[CacheSpec] = Counter()
    page_bytes = max(spec.page_bytes for spec in layers)
    for spec, count in layers.items():
        unified[_with_page(spec, page_bytes, rules)] += count
    size = _group_size(list(unified.values()))
    groups = []
    for spec, count in unified.items():
        number = -(-count // size)
        for index in range(number):  # every number-th layer, so that groups differ by one at most
            members = len(range(index, count, number))
            groups.append(CacheGroup(spec, members, members * page_bytes))
    return tuple(groups)


def _hold_the_same_tokens(layers: Mapping[CacheSpec, int]) -> bool:
    """Whether one block table serves all layers: equal blocks of tokens, and equal tokens held."""
    held = {
        ("whole",) if spec.kind in WHOLE else (spec.kind, spec.reach_tokens, spec.state_blocks)
        for spec in layers
    }
    return len(held) == 1 and len({spec.block_tokens for spec in layers}) == 1


def _with_page(spec: CacheSpec, page_bytes: int, rules: VllmRules) -> CacheSpec:
    """The spec with a page of this size: more tokens a block where that divides, else padded."""
    if spec.page_bytes == page_bytes:
        return spec
    if spec.kind == "state" and rules.pads_unequal_pages:
        return replace(spec, page_bytes=page_bytes)
    if spec.kind != "state" and not page_bytes % spec.page_bytes:
        blocks = page_bytes // spec.page_bytes
        return replace(spec, block_tokens=spec.block_tokens * blocks, page_bytes=page_bytes)
    if spec.kind in ("state", "latent", "sparse_index") or not rules.pads_unequal_pages:
        raise InputRefused(
            f"pages of {spec.kind} layers",
            got=f"{spec.page_bytes} bytes",
            need=f"a divisor of the largest, {page_bytes}: vLLM {rules.release} cannot lay them out together",
        )
    return replace(spec, page_bytes=page_bytes)


def _group_size(counts: list[int]) -> int:
    """Layers a group: the fewest of a spec, or the most where that is less than 1.5 times as many."""
    fewest, most = min(counts), max(counts)
    return most if most < fewest * 1.5 else fewest
