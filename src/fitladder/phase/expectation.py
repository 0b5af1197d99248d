"""Expected KV pool and speed of a phase, each with the record it is from; the live gates decide.

From a live engine of this experiment where one was recorded, else from the registered figures of the
experiment that it follows, else from what is registered, else unknown: the live gates tell.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fitladder.capacity.kv_blocks import kv_tokens_for_blocks, rounded_tokens
from fitladder.capacity.kv_rule import KvPool, decide_kv_fit
from fitladder.evidence.load import Evidence
from fitladder.records.experiment import Experiment
from fitladder.records.generation_time import generation_s, tokens_per_s
from fitladder.records.history import History, load_history
from fitladder.records.settings import Rung
from fitladder.registry.feasibility import CPU_BLOCK_TOKENS
from fitladder.workspace import Workspace

__all__ = ["ExpectedPool", "expected_pool", "expected_speed", "fit_line"]


@dataclass(frozen=True)
class ExpectedPool:
    """The KV pool that is expected, and the record that its figures are from, in words."""

    pool: KvPool
    source: str


def _histories(workspace: Workspace, evidence: Evidence) -> Iterator[History]:
    """Registered figures of the predecessors that ran the same model at the same length, nearest first."""
    own = evidence.experiment
    name, seen = own.predecessor, {own.experiment_id}
    while name is not None and name not in seen and name in evidence.registry.experiments:
        seen.add(name)
        other = evidence.registry.experiments[name]
        alike = (other.model, other.engine.max_model_len_tokens) == (
            own.model,
            own.engine.max_model_len_tokens,
        )
        if alike and (history := load_history(workspace.data, name)) is not None:
            yield history
        name = other.predecessor


def expected_pool(workspace: Workspace, evidence: Evidence) -> ExpectedPool | None:
    """The best figures there are, None where nothing is known before the engine is built."""
    if evidence.begun:
        newest = evidence.begun[-1]
        facts = newest.engine
        if facts.block_size_tokens is not None:
            pool = KvPool(
                block_size_tokens=facts.block_size_tokens,
                mamba_groups=facts.mamba_groups,
                kv_cache_size_tokens=facts.kv_cache_size_tokens,
                num_blocks=facts.num_blocks,
                null_blocks=facts.null_blocks,
            )
            return ExpectedPool(
                pool,
                f"{facts.num_blocks} blocks of {facts.block_size_tokens} tokens, as {newest.key.phase}@"
                f"{newest.key.thinking_budget_tokens} found it",
            )
    for history in _histories(workspace, evidence):
        capacity = history.phases[-1].capacity
        return ExpectedPool(
            KvPool(capacity.block_size_tokens, 0, capacity.kv_cache_size_tokens, num_blocks=None),
            f"{capacity.kv_cache_size_tokens:,} tokens in blocks of {capacity.block_size_tokens}, "
            f"as {history.experiment_id} recorded it",
        )
    return _registered(evidence.experiment)


def _registered(experiment: Experiment) -> ExpectedPool | None:
    """A CPU pool is what its registration says; a GPU's is only known to its engine."""
    engine = experiment.engine
    if engine.backend != "vllm-cpu" or engine.num_gpu_blocks_override is None:
        return None
    block = int(engine.args.get("block_size", CPU_BLOCK_TOKENS))
    blocks = engine.num_gpu_blocks_override
    each = rounded_tokens(engine.max_model_len_tokens, block) // block
    tokens = kv_tokens_for_blocks(blocks, each, engine.max_model_len_tokens)
    return ExpectedPool(KvPool(block, 0, tokens, blocks), f"{blocks} blocks of {block} tokens, as registered")


def expected_speed(workspace: Workspace, evidence: Evidence, budget_tokens: int) -> float | None:
    """Sampled tokens a second, load excluded: of the newest phase here, else of a predecessor's same rung."""
    for bundle in reversed(evidence.bundles):
        totals = bundle.receipt.totals
        speed = tokens_per_s(totals.sampled_tokens, generation_s(totals))
        if speed is not None:
            return speed
    for history in _histories(workspace, evidence):
        for phase in reversed(history.phases):
            if phase.generation is not None and phase.thinking_budget_tokens == budget_tokens:
                return tokens_per_s(phase.generation.sampled_tokens, phase.generation.generation_s)
    return None


def fit_line(experiment: Experiment, rung: Rung, pool: KvPool, sequences: int) -> str:
    """One line: whether the live gate would let `sequences` run at once on `pool`, and how many fit at most.

    The gate's own rule, on the registered longest prompt; under spaced admission one longest must fit.
    """
    spaced = experiment.engine.admission == "spaced"
    fit = decide_kv_fit(
        pool,
        rule=experiment.kv_rule,
        spaced=spaced,
        longest_sequence_tokens=experiment.longest_sequence_tokens(rung),
        active_sequences=sequences,
    )
    if fit.verdict in ("short_of_tokens", "short_of_blocks"):
        who = "one longest sequence needs" if spaced else f"{sequences} sequences need"
        return f"{who} {fit.pool_share:.1f}x the pool; {fit.widest} fit"
    record = "" if fit.rule != "block" else ", a record"
    parts = [
        f"{fit.tokens.required_tokens:,} of {pool.kv_cache_size_tokens:,} tokens "
        f"(margin {fit.tokens.margin_tokens:,}{record})"
    ]
    if fit.blocks is not None:
        parts.append(
            f"{fit.blocks.required_blocks:,} of {fit.usable_blocks:,} blocks "
            f"(margin {fit.blocks.margin_blocks:,})"
        )
    elif fit.rule != "token":
        parts.append("blocks are told by the live gate")
    if fit.verdict == "unknown":
        return f"{sequences} sequences, decided by blocks: {', '.join(parts)}"
    if spaced:
        return (
            f"{sequences} sequences fit under spaced admission, which needs room for one longest: "
            f"{', '.join(parts)}; {fit.widest} would fit at their longest"
        )
    return f"{sequences} sequences fit: {', '.join(parts)}; {fit.widest} would fit"
