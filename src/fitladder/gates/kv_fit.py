"""Gate `kv_fit`: the live KV pool holds every active sequence of the phase at its longest.

A preempted sequence is recomputed in another batch, so a run that does not fit is another experiment. Pure:
sees only numbers that the engine reported at this start.
"""

from fitladder.capacity.kv_blocks import (
    BlockFit,
    blocks_per_sequence,
    check_concurrency,
    kv_tokens_for_blocks,
)
from fitladder.capacity.kv_rule import KvFit, KvPool, decide_kv_fit
from fitladder.errors import GateRefused
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment, Phase
from fitladder.records.gate import GateRecord
from fitladder.records.settings import Rung

__all__ = ["check_kv_fit"]

PRINTED_DECIMALS = 2  # vLLM's log line; any other number of decimals was read from the engine itself
POLICY = "preemption-free admission; a sequence waits until its longest fits"


def check_kv_fit(
    experiment: Experiment, rung: Rung, phase: Phase, facts: EngineFacts, longest_prompt_tokens: int
) -> GateRecord:
    """Refuse a phase whose active sequences do not fit the live KV pool by the registered rule.

    Active are min(records * K, max_num_seqs) sequences. Under spaced admission the pool must hold one, since
    requests are held back so that none is preempted. The rule is capacity/kv_rule.py.

    Args:
        facts: what the built engine reported; no figure of an earlier start counts.
        longest_prompt_tokens: longest prompt of the phase's arm, after tokenisation.

    Returns the record with demand, pool and margin in tokens and in blocks. Raises GateRefused naming demand,
    pool and the widest batch that fits, or that the engine's figures contradict each other.
    """
    if facts.block_size_tokens is None:
        raise GateRefused(
            "no fit can be shown: the engine reports no block size", need="block_size_tokens in its facts"
        )
    _check_concurrency(facts)
    longest = experiment.sequence_tokens(rung, longest_prompt_tokens)
    spaced = experiment.engine.admission == "spaced"
    active = min(experiment.records_per_arm * experiment.k(phase), rung.max_num_seqs)
    block, groups = facts.block_size_tokens, facts.mamba_groups
    pool = KvPool(block, groups, facts.kv_cache_size_tokens, facts.num_blocks, facts.null_blocks)
    fit = decide_kv_fit(
        pool,
        rule=experiment.kv_rule,
        spaced=spaced,
        longest_sequence_tokens=longest,
        active_sequences=active,
    )
    implied = kv_tokens_for_blocks(
        facts.num_blocks,
        blocks_per_sequence(facts.max_model_len_tokens, block, groups),
        facts.max_model_len_tokens,
    )
    if fit.verdict == "short_of_tokens":
        raise _refused_tokens(fit, facts)
    if experiment.kv_rule != "token" and implied != facts.kv_cache_size_tokens:
        raise GateRefused(
            "the engine's capacity figures are inconsistent",
            got=f"{facts.kv_cache_size_tokens} KV tokens beside {facts.num_blocks} blocks of {block}",
            need=f"{implied} KV tokens for those blocks and {groups} Mamba groups",
            do="the block rule cannot be trusted on this model's cache layout",
        )
    blocks = fit.blocks
    if blocks is None or fit.deciding_blocks is None:
        raise GateRefused("no fit can be shown: the engine reports no blocks", need="num_blocks in its facts")
    if fit.verdict != "fits":
        raise _refused_blocks(fit, fit.deciding_blocks)
    return GateRecord(
        name="kv_fit",
        numbers={
            "kv_rule": experiment.kv_rule,
            "admission": experiment.engine.admission,
            "policy": POLICY if spaced else None,
            "worst_case_width_checked": not spaced,
            "active_sequences": active,
            "resident_sequences_checked": fit.resident_sequences,
            "longest_sequence_tokens": longest,
            "block_size_tokens": block,
            "rounded_tokens_per_sequence": fit.tokens.rounded_tokens_per_sequence,
            "kv_cache_size_tokens": facts.kv_cache_size_tokens,
            "required_tokens": fit.tokens.required_tokens,
            "margin_tokens": fit.tokens.margin_tokens,
            "token_rule_fits": fit.tokens.fits,
            "num_blocks": facts.num_blocks,
            "null_blocks": facts.null_blocks,
            "mamba_groups": groups,
            "usable_blocks": fit.usable_blocks,
            "blocks_per_sequence": blocks.blocks_per_sequence,
            "required_blocks": blocks.required_blocks,
            "margin_blocks": blocks.margin_blocks,
            "block_rule_fits": blocks.fits,
            "kv_tokens_of_those_blocks": implied,
            "max_concurrency": facts.max_concurrency,
            "largest_width": fit.widest,
        },
    )


def _check_concurrency(facts: EngineFacts) -> None:
    """Refuse facts unless kv_cache_size_tokens == int(max_concurrency * max_model_len), as in vLLM."""
    whole, _, decimals = facts.max_concurrency.partition(".")
    if not (whole.isdecimal() and whole.isascii() and (decimals or "0").isdecimal()):
        raise GateRefused(
            "no fit can be shown: concurrency", got=repr(facts.max_concurrency), need="a decimal number"
        )
    check_concurrency(
        facts.kv_cache_size_tokens,
        float(facts.max_concurrency),
        facts.max_model_len_tokens,
        printed=len(decimals) == PRINTED_DECIMALS,
    )


def _refused_tokens(fit: KvFit, facts: EngineFacts) -> GateRefused:
    tokens = fit.tokens
    return GateRefused(
        f"the KV cache is too small by {-tokens.margin_tokens} tokens",
        got=f"{facts.kv_cache_size_tokens} KV tokens",
        need=f"{fit.resident_sequences} x {tokens.rounded_tokens_per_sequence} = {tokens.required_tokens}",
        do=_advice(fit.widest),
    )


def _refused_blocks(fit: KvFit, blocks: BlockFit) -> GateRefused:
    return GateRefused(
        f"the KV cache is too small by {-blocks.margin_blocks} blocks",
        got=f"{fit.usable_blocks} usable blocks",
        need=f"{fit.resident_sequences} x {blocks.blocks_per_sequence} = {blocks.required_blocks}",
        do=_advice(fit.widest),
    )


def _advice(widest: int | None) -> str:
    return (
        f"{widest} sequences fit: plan a rung of that width with `fitladder plan`"
        if widest
        else "not one sequence fits: plan a smaller budget with `fitladder plan`"
    )
