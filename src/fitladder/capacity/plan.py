"""What would a plan look like on this model, this GPU and this workload? One answer from all parts.

The pool is taken from live figures where there are some, else predicted; the widest safe batch, its graphs
and, for a number of sequences, what spaced admission would gain in steps. Pure.
"""

from dataclasses import dataclass

from fitladder.capacity.block_geometry import Geometry, Platform
from fitladder.capacity.capture_coverage import covering_capture_list, dense_capture_list, uncovered_widths
from fitladder.capacity.default_capture import implicit_capture_list
from fitladder.capacity.gpu_memory import MemoryPlan, predict_memory
from fitladder.capacity.kv_blocks import BlockFit, TokenFit, block_rule, token_rule, usable_pool_blocks
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
    geometry: Geometry,
    wish: EngineWish,
    max_total_tokens: int,
    *,
    gpu_bytes: int | None,
    blocks: int | None = None,
    kv_tokens: int | None = None,
) -> tuple[Cache, MemoryPlan | None]:
    """Cache from live figures, else from a GPU's memory. Raises UsageError where neither is given."""
    size = geometry.block_size_tokens(wish.platform)
    pool = settle_pool_blocks(
        block_size_tokens=size,
        mamba_groups=geometry.mamba_groups,
        max_model_len_tokens=wish.max_model_len_tokens,
        blocks=blocks,
        kv_tokens=kv_tokens,
    )
    if pool is not None:
        return Cache(size, geometry.mamba_groups, pool, wish.max_model_len_tokens), None
    if gpu_bytes is None:
        raise UsageError("no pool to plan with", need="--gpu, --blocks, --kv-tokens or --preflight")
    width = FIRST_GUESS_SEQS
    for _ in range(2):
        memory = predict_memory(
            geometry,
            total_bytes=gpu_bytes,
            gpu_memory_utilization=wish.gpu_memory_utilization,
            block_size_tokens=size,
            max_num_batched_tokens=wish.max_num_batched_tokens,
            max_num_seqs=width,
            capture_sizes=len(covering_capture_list(width)),
        )
        cache = Cache(size, geometry.mamba_groups, memory.pool_blocks, wish.max_model_len_tokens)
        plan = plan_capacity(cache, max_total_tokens, max_num_batched_tokens=wish.max_num_batched_tokens)
        width = plan.max_num_seqs
    return cache, memory


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
    usable = usable_pool_blocks(cache.pool_blocks)
    blocks = block_rule(plan.max_total_tokens, cache.block_size_tokens, cache.mamba_groups, active, usable)
    tokens = token_rule(plan.max_total_tokens, cache.block_size_tokens, active, cache.kv_cache_size_tokens)
    if blocks.fits and tokens.fits:
        implicit = implicit_capture_list(
            max_num_seqs, plan.max_num_batched_tokens, max_capture_size=max_num_seqs
        )
        return WidthFit(
            max_num_seqs=max_num_seqs,
            active_seqs=active,
            tokens=tokens,
            blocks=blocks,
            capture_sizes=covering_capture_list(max_num_seqs),
            implicit_capture_sizes=implicit,
            uncovered_widths_if_implicit=uncovered_widths(implicit, max_num_seqs),
        )
    times = max(blocks.required_blocks / usable, tokens.required_tokens / cache.kv_cache_size_tokens)
    sizes = " ".join(map(str, plan.capture_sizes))
    raise GateRefused(
        f"{active} sequences need {times:.1f}x the pool; {plan.max_num_seqs} fit; capture list {sizes}"
    )


def predict_steps(cache: Cache, plan: CapacityPlan, prompt_tokens: int, sequences: int) -> AdmissionOutlook:
    """Engine steps of both admissions, and the bound below both: all block-steps over the pool."""
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
