"""KV-cache fit: can every active sequence stay resident at its longest?

A preempted sequence is recomputed in another batch, so a run that does not fit is another experiment.
Pure: it sees only numbers that a live engine reported at this start; no figure of an earlier one counts.
"""

from fitladder.engine.base import EngineFacts
from fitladder.errors import GateRefused
from fitladder.gates.record import GateRecord
from fitladder.protocol.capacity import (
    BlockFit,
    TokenFit,
    block_rule,
    blocks_per_sequence,
    check_concurrency,
    kv_tokens_for_blocks,
    largest_width_by_blocks,
    largest_width_by_tokens,
    longest_sequence_tokens,
    token_rule,
)
from fitladder.protocol.experiment import Experiment, Phase, Rung

__all__ = ["check_kv_fit"]

PRINTED_DECIMALS = 2  # vLLM's log line; any other number of decimals was read from the engine itself
POLICY = "preemption-free admission; a sequence waits until its longest fits"


def check_kv_fit(
    experiment: Experiment, rung: Rung, phase: Phase, facts: EngineFacts, longest_prompt_tokens: int
) -> GateRecord:
    """Both fit rules on the live pool; `experiment.kv_rule` says which decide.

    Width is min(records * K, max_num_seqs). Under spaced admission the pool must hold one longest sequence,
    and admission, not width, keeps it free of preemption. Raises GateRefused with both figures.
    """
    if facts.block_size_tokens is None:
        raise GateRefused(
            "no fit can be shown: the engine reports no block size", need="block_size_tokens in its facts"
        )
    _check_concurrency(facts)
    longest = longest_sequence_tokens(
        longest_prompt_tokens,
        rung.thinking_budget_tokens,
        len(experiment.thinking.close_token_ids),
        experiment.sampling.answer_max_tokens,
    )
    spaced = experiment.engine.admission == "spaced"
    active = min(experiment.records_per_arm * experiment.k(phase), rung.max_num_seqs)
    resident = 1 if spaced else active
    block, groups, usable = facts.block_size_tokens, facts.mamba_groups, facts.num_blocks - facts.null_blocks
    by_tokens = token_rule(longest, block, resident, facts.kv_cache_size_tokens)
    by_blocks = block_rule(longest, block, groups, resident, usable)
    implied = kv_tokens_for_blocks(
        facts.num_blocks,
        blocks_per_sequence(facts.max_model_len_tokens, block, groups),
        facts.max_model_len_tokens,
    )
    widest = largest_width_by_tokens(longest, block, facts.kv_cache_size_tokens)
    if experiment.kv_rule == "both":
        widest = min(widest, largest_width_by_blocks(longest, block, groups, usable))
    if not by_tokens.fits:
        raise _refused_tokens(by_tokens, resident, facts, widest)
    if experiment.kv_rule == "both":
        if implied != facts.kv_cache_size_tokens:
            raise GateRefused(
                "the engine's capacity figures are inconsistent",
                got=f"{facts.kv_cache_size_tokens} KV tokens beside {facts.num_blocks} blocks of {block}",
                need=f"{implied} KV tokens for those blocks and {groups} Mamba groups",
                do="the block rule cannot be trusted on this model's cache layout",
            )
        if not by_blocks.fits:
            raise _refused_blocks(by_blocks, resident, usable, widest)
    return GateRecord(
        name="kv_fit",
        numbers={
            "kv_rule": experiment.kv_rule,
            "admission": experiment.engine.admission,
            "policy": POLICY if spaced else None,
            "worst_case_width_checked": not spaced,
            "active_sequences": active,
            "resident_sequences_checked": resident,
            "longest_sequence_tokens": longest,
            "block_size_tokens": block,
            "rounded_tokens_per_sequence": by_tokens.rounded_tokens_per_sequence,
            "kv_cache_size_tokens": facts.kv_cache_size_tokens,
            "required_tokens": by_tokens.required_tokens,
            "margin_tokens": by_tokens.margin_tokens,
            "token_rule_fits": by_tokens.fits,
            "num_blocks": facts.num_blocks,
            "null_blocks": facts.null_blocks,
            "mamba_groups": groups,
            "usable_blocks": usable,
            "blocks_per_sequence": by_blocks.blocks_per_sequence,
            "required_blocks": by_blocks.required_blocks,
            "margin_blocks": by_blocks.margin_blocks,
            "block_rule_fits": by_blocks.fits,
            "kv_tokens_of_those_blocks": implied,
            "max_concurrency": facts.max_concurrency,
            "largest_width": widest,
        },
    )


def _check_concurrency(facts: EngineFacts) -> None:
    """vLLM's two figures are one: `kv_cache_size_tokens == int(max_concurrency * max_model_len)`."""
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


def _refused_tokens(fit: TokenFit, resident: int, facts: EngineFacts, widest: int) -> GateRefused:
    return GateRefused(
        f"the KV cache is too small by {-fit.margin_tokens} tokens",
        got=f"{facts.kv_cache_size_tokens} KV tokens",
        need=f"{resident} x {fit.rounded_tokens_per_sequence} = {fit.required_tokens}",
        do=_advice(widest),
    )


def _refused_blocks(fit: BlockFit, resident: int, usable: int, widest: int) -> GateRefused:
    return GateRefused(
        f"the KV cache is too small by {-fit.margin_blocks} blocks",
        got=f"{usable} usable blocks",
        need=f"{resident} x {fit.blocks_per_sequence} = {fit.required_blocks}",
        do=_advice(widest),
    )


def _advice(widest: int) -> str:
    return (
        f"{widest} sequences fit: plan a rung of that width with `fitladder plan`"
        if widest
        else "not one sequence fits: plan a smaller budget with `fitladder plan`"
    )
