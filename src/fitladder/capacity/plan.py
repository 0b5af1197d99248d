"""The plan of one model on one GPU for one workload, from all parts.

The pool is taken from live figures where there are some, else predicted; the widest safe batch, its graphs
and, for a number of sequences, what spaced admission would gain in steps. Pure.
"""

from dataclasses import dataclass, replace

from fitladder.capacity.block_geometry import Geometry, Platform
from fitladder.capacity.capture_coverage import covering_capture_list, dense_capture_list, uncovered_widths
from fitladder.capacity.default_capture import implicit_capture_list
from fitladder.capacity.gpu_memory import MemoryPlan, predict_memory
from fitladder.capacity.kv_blocks import BlockFit, TokenFit, usable_pool_blocks
from fitladder.capacity.kv_specs import CacheLayout
from fitladder.capacity.pool import Pool
from fitladder.capacity.spaced_starts import lower_bound_steps, peak_width, plan_starts, plan_steps
from fitladder.capacity.widest_batch import Cache, CapacityPlan, plan_capacity, settle_pool_blocks
from fitladder.errors import GateRefused, UsageError

__all__ = ["AdmissionOutlook", "EngineWish", "WidthFit", "check_width", "predict_cache", "predict_steps"]

FIRST_GUESS_SEQS = 64  # the width enters the prediction weakly: one repetition settles it


@dataclass(frozen=True)
class EngineWish:
    """The engine arguments that a prediction depends on."""

    max_model_len_tokens: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float
    platform: Platform = "cuda"


@dataclass(frozen=True)
class AdmissionOutlook:
    """Steps for `sequences` that all run to their budget, admitted by worst case and spaced."""

    sequences: int
    worst_case_steps: int
    spaced_steps: int
    spaced_width: int
    spaced_capture_sizes: tuple[int, ...]
    lower_bound_steps: int


@dataclass(frozen=True)
class WidthFit:
    """A width that was asked for and fits: the fits of what runs at once under it, and its graphs."""

    max_num_seqs: int
    active_seqs: int  # fewer than max_num_seqs where there are not so many sequences
    tokens: TokenFit
    blocks: BlockFit
    capture_sizes: tuple[int, ...]
    implicit_capture_sizes: tuple[int, ...]
    uncovered_widths_if_implicit: tuple[int, ...]


def predict_cache(
    geometry: Geometry | None,
    wish: EngineWish,
    max_total_tokens: int,
    *,
    gpu_bytes: int | None,
    blocks: int | None = None,
    kv_tokens: int | None = None,
    layout: CacheLayout | None = None,
) -> tuple[Cache, MemoryPlan | None]:
    """Cache from live figures, else from a GPU's memory.

    geometry: what the model's memory depends on; it is needed for a GPU's pool alone where there is a layout.
    layout: the cache's layout under the engine's arguments, by default that of the geometry.
    Raises UsageError where there is no pool, or no geometry to predict one with.
    """
    empty = _empty_cache(geometry, wish, layout)
    pool = settle_pool_blocks(
        block_size_tokens=empty.block_size_tokens,
        mamba_groups=empty.mamba_groups,
        max_model_len_tokens=wish.max_model_len_tokens,
        blocks=blocks,
        kv_tokens=kv_tokens,
        layout=empty.layout,
    )
    if pool is not None:
        return replace(empty, pool_blocks=pool), None
    if gpu_bytes is None:
        raise UsageError("no pool to plan with", need="--gpu, --blocks, --kv-tokens or --preflight")
    if geometry is None:
        raise UsageError(
            "no memory of this model is predicted", need="--blocks or --kv-tokens of a live engine"
        )
    width = FIRST_GUESS_SEQS
    for _ in range(2):
        memory = predict_memory(
            geometry,
            total_bytes=gpu_bytes,
            gpu_memory_utilization=wish.gpu_memory_utilization,
            block_size_tokens=empty.block_size_tokens,
            max_num_batched_tokens=wish.max_num_batched_tokens,
            max_num_seqs=width,
            capture_sizes=len(covering_capture_list(width)),
            block_bytes=None if layout is None else layout.block_bytes,
        )
        cache = replace(empty, pool_blocks=memory.pool_blocks)
        plan = plan_capacity(cache, max_total_tokens, max_num_batched_tokens=wish.max_num_batched_tokens)
        width = plan.max_num_seqs
    return cache, memory


def _empty_cache(geometry: Geometry | None, wish: EngineWish, layout: CacheLayout | None) -> Cache:
    """A cache without a pool yet; one that grows by whole sequences needs no layout to be counted with."""
    if layout is not None:
        kept = None if layout.grows_by_whole_sequence else layout
        return Cache(layout.block_size_tokens, layout.state_blocks, 0, wish.max_model_len_tokens, kept)
    if geometry is None:
        raise UsageError("nothing to plan", need="--model or --preflight")
    return Cache(
        geometry.block_size_tokens(wish.platform), geometry.mamba_groups, 0, wish.max_model_len_tokens
    )


def check_width(cache: Cache, plan: CapacityPlan, max_num_seqs: int, sequences: int | None) -> WidthFit:
    """How this width fits. Raises GateRefused where so many at once exceed the pool, naming how far, what
    fits, and its graphs.
    """
    if max_num_seqs > plan.max_num_batched_tokens:
        raise GateRefused(
            "max_num_seqs over what a step may schedule",
            got=max_num_seqs,
            need=f"at most max_num_batched_tokens, {plan.max_num_batched_tokens}: vLLM refuses more",
        )
    active = max_num_seqs if sequences is None else min(max_num_seqs, sequences)
    fit = cache.decide_fit(plan.max_total_tokens, active, plan.kv_rule)
    if fit.verdict == "fits" and fit.blocks is not None:
        implicit = implicit_capture_list(
            max_num_seqs, plan.max_num_batched_tokens, max_capture_size=max_num_seqs
        )
        return WidthFit(
            max_num_seqs=max_num_seqs,
            active_seqs=active,
            tokens=fit.tokens,
            blocks=fit.blocks,
            capture_sizes=covering_capture_list(max_num_seqs),
            implicit_capture_sizes=implicit,
            uncovered_widths_if_implicit=uncovered_widths(implicit, max_num_seqs),
        )
    times = fit.pool_share or 0.0
    sizes = " ".join(map(str, plan.capture_sizes))
    raise GateRefused(
        f"{active} sequences need {times:.1f}x the pool; {plan.max_num_seqs} fit; capture list {sizes}"
    )


def predict_steps(cache: Cache, plan: CapacityPlan, prompt_tokens: int, sequences: int) -> AdmissionOutlook:
    """Engine steps of both admissions, and the bound below both: all block-steps over the pool.

    Raises UsageError on a cache that frees blocks as it goes (windows, chunks): its steps are not modelled.
    """
    if cache.layout is not None:
        raise UsageError(
            "admission in steps",
            got="a cache with windows, chunks or a state a block",
            need="one that grows by whole sequences",
            do="leave --sequences out",
        )
    pool = Pool(usable_pool_blocks(cache.pool_blocks), cache.block_size_tokens, cache.mamba_groups)
    length = plan.max_total_tokens - prompt_tokens
    prompts = [prompt_tokens] * sequences
    starts = plan_starts(prompts, length, pool, max_num_seqs=sequences)
    width = peak_width(starts, length)
    return AdmissionOutlook(
        sequences=sequences,
        worst_case_steps=-(-sequences // plan.max_num_seqs) * length,
        spaced_steps=plan_steps(starts, length),
        spaced_width=width,
        spaced_capture_sizes=dense_capture_list(width),
        lower_bound_steps=lower_bound_steps(prompts, length, pool),
    )
