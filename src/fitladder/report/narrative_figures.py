"""Figures that a narrative may name, by dotted path: the registered protocol's and the audited phases'.

Plain nested data: no attribute access, no code, nothing that is not in the view.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from fitladder.records.experiment import Experiment
from fitladder.report.view import Comparison, PhaseView

__all__ = ["NotRun", "compared_figures", "phase_figures", "registered_figures"]


class NotRun:
    """Stands for every figure of a phase that has no audit yet."""


def registered_figures(experiment: Experiment) -> dict[str, Any]:
    """`registered.<name>`: what was frozen before the first engine was built."""
    loop, limits = experiment.loop_rule, experiment.thresholds
    return {
        "experiment_id": experiment.experiment_id,
        "predecessor": experiment.predecessor,
        "model": experiment.model.name,
        "records": experiment.records_per_arm,
        "probe_k": experiment.probe_k,
        "matrix_k": experiment.matrix_k,
        "probe_samples": experiment.records_per_arm * experiment.probe_k,
        "rungs": len(experiment.rungs),
        "max_model_len_tokens": experiment.engine.max_model_len_tokens,
        "answer_max_tokens": experiment.sampling.answer_max_tokens,
        "longest_prompt_tokens": experiment.longest_prompt_tokens,
        "tail_tokens": loop.tail_tokens,
        "max_period_tokens": loop.max_period_tokens,
        "min_match_rate": loop.min_match_rate.value,
        "unresolved_ceiling": limits.unresolved_rate_below.value,
        "answer_limit_ceiling": limits.answer_limit_rate_below.value,
        "loop_ceiling": limits.loop_rate_at_most.value,
        "smallest_budget": experiment.rungs[0].thinking_budget_tokens,
        "largest_budget": experiment.rungs[-1].thinking_budget_tokens,
        "budget": {
            str(rung.thinking_budget_tokens): rung.thinking_budget_tokens for rung in experiment.rungs
        },
        "width": {str(rung.thinking_budget_tokens): rung.max_num_seqs for rung in experiment.rungs},
    }


def phase_figures(phase: PhaseView) -> dict[str, Any]:
    """`rung(B).<phase>.<name>`: figures of one phase; NotRun where it has none yet."""
    facts: dict[str, Any] = {
        "budget": phase.thinking_budget_tokens,
        "max_num_seqs": phase.max_num_seqs,
        "k": phase.k,
        "records": phase.records,
        "state": phase.state,
    }
    for name in (
        "kv_cache_size_tokens",
        "block_size_tokens",
        "active_sequences",
        "rounded_tokens_per_sequence",
        "required_tokens",
        "margin_tokens",
        "usable_blocks",
        "required_blocks",
        "margin_blocks",
    ):
        facts[name] = getattr(phase.capacity, name) if phase.capacity else NotRun()
    for name in ("requested", "resolved", "uncovered"):
        facts[name] = getattr(phase.graphs, name) if phase.graphs else NotRun()
    for name in ("sampled_tokens", "generation_s", "tokens_per_s", "preemptions", "recomputed_tokens"):
        facts[name] = getattr(phase.generation, name) if phase.generation else NotRun()
    return facts | _termination_facts(phase)


def _termination_facts(phase: PhaseView) -> dict[str, Any]:
    audit = phase.termination
    facts: dict[str, Any] = {
        name: getattr(audit, name) if audit else NotRun()
        for name in ("samples", "boundary_contacts", "forced_closes", "burned_tokens", "thinking_tokens")
    }
    for name, share_name in (
        ("loop", "loops"),
        ("unresolved", "unresolved"),
        ("answer_limit", "answer limit"),
    ):
        share = next((share for share in audit.shares if share.name == share_name), None) if audit else None
        plural = {"loop": "loops"}.get(name, name)
        facts[plural] = share.count if share else NotRun()
        facts[f"{name}_rate"] = Fraction(share.count, share.total or 1) if share else NotRun()
    facts["ceilings"] = len(audit.shares) if audit else NotRun()
    facts["ceilings_broken"] = sum(not share.within for share in audit.shares) if audit else NotRun()
    burned, thinking = facts["burned_tokens"], facts["thinking_tokens"]
    known = isinstance(burned, int) and isinstance(thinking, int) and thinking > 0
    facts["burned_share"] = Fraction(burned, thinking) if known else (NotRun() if audit is None else None)
    facts["shortest_period"] = audit.periods_tokens[0] if audit and audit.periods_tokens else NotRun()
    facts["longest_period"] = audit.periods_tokens[-1] if audit and audit.periods_tokens else NotRun()
    return facts


def compared_figures(rows: Sequence[Comparison]) -> dict[str, dict[str, Any]]:
    """`compared(<experiment>, <budget>).<name>`: figures of other experiments, descriptive only."""
    return {
        f"{row.experiment_id}, {row.thinking_budget_tokens}": {
            "budget": row.thinking_budget_tokens,
            "max_num_seqs": row.max_num_seqs,
            "required_tokens": row.required_tokens,
            "kv_cache_size_tokens": row.kv_cache_size_tokens,
            "sampled_tokens": row.sampled_tokens,
            "generation_s": row.generation_s,
            "tokens_per_s": row.tokens_per_s,
        }
        for row in rows
    }
