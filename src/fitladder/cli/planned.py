"""A plan as it is printed: a table that begins with the width that was asked for, or one document."""

from dataclasses import asdict, dataclass
from typing import Any

from fitladder.capacity.capture_coverage import render_widths
from fitladder.capacity.gpu_memory import MemoryPlan
from fitladder.capacity.plan import AdmissionOutlook, WidthFit
from fitladder.capacity.widest_batch import Cache, CapacityPlan
from fitladder.cli.model_layout import ModelCache
from fitladder.cli.options import print_json, print_table

__all__ = ["PrintedPlan", "print_plan"]

MOST_SHOWN = 12
_GIB = 1 << 30


@dataclass(frozen=True)
class PrintedPlan:
    """Everything that a plan shows. `asked`: the width that --max-num-seqs named; `model`: whose cache."""

    cache: Cache
    result: CapacityPlan
    asked: WidthFit | None
    memory: MemoryPlan | None
    outlook: AdmissionOutlook | None
    model: ModelCache | None


def print_plan(plan: PrintedPlan, *, as_json: bool) -> None:
    """Print a plan, as a table or as one JSON document."""
    if as_json:
        print_json(_document(plan))
    else:
        _print(plan)


def _document(plan: PrintedPlan) -> dict[str, Any]:
    cache, result, asked, memory = plan.cache, plan.result, plan.asked, plan.memory
    return {
        "block_size_tokens": cache.block_size_tokens,
        "mamba_groups": cache.mamba_groups,
        "blocks_per_sequence": result.blocks_per_sequence,
        "pool_blocks": cache.pool_blocks,
        "pool_is_predicted": memory is not None,
        "kv_cache_size_tokens": result.kv_cache_size_tokens,
        "max_model_len_tokens": cache.max_model_len_tokens,
        "max_total_tokens": result.max_total_tokens,
        "rounded_tokens_per_sequence": result.tokens.rounded_tokens_per_sequence,
        "max_num_seqs": result.max_num_seqs,
        "max_num_seqs_by_tokens": result.max_num_seqs_by_tokens,
        "max_num_seqs_by_blocks": result.max_num_seqs_by_blocks,
        "required_tokens": result.tokens.required_tokens,
        "margin_tokens": result.tokens.margin_tokens,
        "required_blocks": result.blocks.required_blocks,
        "margin_blocks": result.blocks.margin_blocks,
        "capture_sizes": list(result.capture_sizes),
        "implicit_capture_sizes": list(result.implicit_capture_sizes),
        "uncovered_widths_if_implicit": list(result.uncovered_widths_if_implicit),
        "asked": asdict(asked) if asked else None,
        "memory": asdict(memory) if memory else None,
        "admission": asdict(plan.outlook) if plan.outlook else None,
        "kv_rule": result.kv_rule,
        "vllm": plan.model.vllm if plan.model else None,
        "exact": plan.model.exact if plan.model else None,
        "layout": asdict(plan.model.layout) if plan.model else None,
    }


def _list(sizes: tuple[int, ...]) -> str:
    shown = sizes if len(sizes) <= MOST_SHOWN else (*sizes[: MOST_SHOWN - 2], "...", sizes[-1])
    return " ".join(map(str, shown))


def _title(result: CapacityPlan, asked: WidthFit | None) -> str:
    if asked is None:
        return f"{result.max_num_seqs} sequences fit"
    if asked.max_num_seqs == result.max_num_seqs:
        return f"{result.max_num_seqs} sequences fit, and no more"
    some = f" for {asked.active_seqs} sequences" if asked.active_seqs < asked.max_num_seqs else ""
    return f"max_num_seqs {asked.max_num_seqs} fits{some}; {result.max_num_seqs} at once is the most"


def _asked(cache: Cache, asked: WidthFit) -> list[tuple[str, ...]]:
    name, usable = (
        f"max_num_seqs {asked.max_num_seqs}",
        asked.blocks.required_blocks + asked.blocks.margin_blocks,
    )
    bare = render_widths(asked.uncovered_widths_if_implicit)
    left = (
        f"leaves {bare} uncovered" if asked.uncovered_widths_if_implicit else f"covers 1-{asked.max_num_seqs}"
    )
    return [
        (
            f"{name}: tokens",
            f"{asked.tokens.required_tokens:,} of {cache.kv_cache_size_tokens:,}",
            f"margin {asked.tokens.margin_tokens:,}",
        ),
        (
            f"{name}: blocks",
            f"{asked.blocks.required_blocks:,} of {usable:,} usable",
            f"margin {asked.blocks.margin_blocks:,}",
        ),
        (f"{name}: capture list", _list(asked.capture_sizes), f"covers 1-{asked.max_num_seqs}"),
        (f"{name}: implicit list", _list(asked.implicit_capture_sizes), left),
    ]


def _print(plan: PrintedPlan) -> None:
    cache, result, asked, memory, outlook = plan.cache, plan.result, plan.asked, plan.memory, plan.outlook
    source = "predicted" if memory else "live"
    sizes, implicit = _list(result.capture_sizes), _list(result.implicit_capture_sizes)
    bare = render_widths(result.uncovered_widths_if_implicit)
    rows: list[tuple[str, ...]] = [
        ("longest sequence", f"{result.max_total_tokens:,} tokens", f"{result.blocks_per_sequence} blocks"),
        ("block", f"{cache.block_size_tokens} tokens", f"{cache.mamba_groups} Mamba groups"),
        ("pool", f"{cache.pool_blocks:,} blocks, {source}", f"{result.kv_cache_size_tokens:,} KV tokens"),
        (
            "max_num_seqs by tokens",
            str(result.max_num_seqs_by_tokens),
            f"margin {result.tokens.margin_tokens:,}",
        ),
        (
            "max_num_seqs by blocks",
            str(result.max_num_seqs_by_blocks),
            f"margin {result.blocks.margin_blocks:,}",
        ),
        ("capture list", sizes, f"covers 1-{result.max_num_seqs}"),
        (
            "implicit list",
            implicit,
            f"largest size {result.max_num_seqs}: leaves {bare} uncovered",
        ),
    ]
    if plan.model:
        rows.append(_layout_row(plan.model))
    if memory:
        rows += [
            (f"memory: {name}", f"{value / _GIB:.2f} GiB", note)
            for name, value, note in (
                ("requested", memory.requested_bytes, f"of {memory.total_bytes / _GIB:.2f} GiB"),
                ("weights", memory.weight_bytes, ""),
                ("activations", memory.activation_bytes, "hand count of the widest row"),
                ("reserve", memory.reserve_bytes, "calibrated"),
                ("KV cache", memory.kv_cache_bytes, f"{memory.block_bytes:,} bytes a block"),
            )
        ]
    if outlook:
        wide = _list(outlook.spaced_capture_sizes)
        rows += [
            ("worst-case admission", f"{outlook.worst_case_steps:,} steps", f"{outlook.sequences} sequences"),
            (
                "spaced admission",
                f"{outlook.spaced_steps:,} steps",
                f"up to {outlook.spaced_width} wide: {wide}",
            ),
            ("no admission below", f"{outlook.lower_bound_steps:,} steps", "all block-steps over the pool"),
        ]
    if asked and asked.max_num_seqs != result.max_num_seqs:
        rows = _asked(cache, asked) + rows
    print_table(_title(result, asked), ("what", "figure", "note"), rows)


def _layout_row(model: ModelCache) -> tuple[str, ...]:
    groups = [f"{group.layers} {group.spec.kind}" for group in model.layout.groups]
    shown = [
        f"{groups.count(name)} x {name}" if groups.count(name) > 1 else name for name in dict.fromkeys(groups)
    ]
    by = f"vLLM {model.vllm} itself" if model.exact else f"rules of vLLM {model.vllm}"
    return ("groups of layers", ", ".join(shown), by)
