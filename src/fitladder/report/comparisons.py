"""Rows of the descriptive table across experiments; each cites its source, and nothing is pooled."""

from collections.abc import Iterable
from fractions import Fraction

from fitladder.records.generation_time import tokens_per_s
from fitladder.records.history import History
from fitladder.report.view import Comparison, PhaseView, Termination
from fitladder.report.words import NOT_RECORDED, percent

__all__ = ["diagnostic_comparisons", "phase_comparisons"]


def phase_comparisons(experiment_id: str, phases: Iterable[PhaseView]) -> tuple[Comparison, ...]:
    """One row for each of `phases` that generated, under the name `experiment_id`."""
    return tuple(
        Comparison(
            experiment_id=experiment_id,
            label=f"{phase.max_num_seqs} wide, {phase.graphs.mode if phase.graphs else NOT_RECORDED} capture",
            thinking_budget_tokens=phase.thinking_budget_tokens,
            max_num_seqs=phase.max_num_seqs,
            capture=phase.graphs.mode if phase.graphs else NOT_RECORDED,
            required_tokens=phase.capacity.required_tokens,
            kv_cache_size_tokens=phase.capacity.kv_cache_size_tokens,
            sampled_tokens=phase.generation.sampled_tokens,
            generation_s=phase.generation.generation_s,
            tokens_per_s=phase.generation.tokens_per_s,
            loops=_share(phase.termination, "loops"),
            unresolved=_share(phase.termination, "unresolved"),
            answer_limit=_share(phase.termination, "answer limit"),
            source=f"audit {phase.audit_sha256}" if phase.audit_sha256 else NOT_RECORDED,
        )
        for phase in phases
        if phase.generation and phase.capacity
    )


def _share(audit: Termination | None, name: str) -> str:
    share = next((share for share in audit.shares if share.name == name), None) if audit else None
    if share is None or not share.total:
        return NOT_RECORDED
    return f"{share.count} of {share.total} ({percent(Fraction(share.count, share.total))})"


def diagnostic_comparisons(history: History) -> tuple[Comparison, ...]:
    """A recorded run that is no registered experiment: geometry and speed, no audit, never evidence."""
    return tuple(
        Comparison(
            experiment_id=history.experiment_id,
            label=f"{phase.max_num_seqs} wide, {phase.capture.mode} capture",
            thinking_budget_tokens=phase.thinking_budget_tokens,
            max_num_seqs=phase.max_num_seqs,
            capture=phase.capture.mode,
            required_tokens=phase.capacity.required_tokens,
            kv_cache_size_tokens=phase.capacity.kv_cache_size_tokens,
            sampled_tokens=phase.generation.sampled_tokens,
            generation_s=phase.generation.generation_s,
            tokens_per_s=tokens_per_s(phase.generation.sampled_tokens, phase.generation.generation_s) or 0.0,
            loops=NOT_RECORDED,
            unresolved=NOT_RECORDED,
            answer_limit=NOT_RECORDED,
            source="registered figures, no audit; a diagnostic",
        )
        for phase in history.phases
        if phase.generation
    )
