"""Termination audit of a bundle: how each sample ended, and whether the phase is adequate.

Content-blind: reads token ids, counts and finish reasons, never text, parser output, correctness or a hidden
example. An inadequate phase is a result; samples that cannot be this phase's are an error.
"""

from collections.abc import Sequence

from fitladder.audit.columns import TerminationColumns, check_columns
from fitladder.audit.identical_samples import equal_samples
from fitladder.audit.periodicity import is_loop, nearest_lag, onset_token
from fitladder.errors import BundleError
from fitladder.records.audit import Ending, SampleAudit, TerminationAudit, audit_rate
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Experiment

__all__ = ["TerminationAudit", "TerminationColumns", "audit_termination"]


def audit_termination(
    columns: TerminationColumns, experiment: Experiment, key: BundleKey, record_ids: Sequence[str]
) -> TerminationAudit:
    """Classify every sample and compare three rates with the registered `thresholds`.

    A sample is a boundary contact where thinking was closed by force or reached the budget less one token. A
    contact is a `periodic_loop` by the registered `loop_rule` (periodicity.py), from its `min_budget_tokens`
    on, else `unresolved`. The rates are those of unresolved contacts, of loops, and of answers at their
    limit.

    Args:
        columns: the bundle's samples.
        key: experiment, budget and phase of the bundle.
        record_ids: the arm's records, each expected with sample indices 0..K-1.

    Returns the audit; missing samples make it incomplete, and so not adequate. Raises BundleError on a
    repeated or foreign sample, or on one that no generation can produce.
    """
    rung, k = experiment.rung(key.thinking_budget_tokens), experiment.k(key.phase)
    if key.experiment_id != experiment.experiment_id or len(record_ids) != experiment.records_per_arm:
        raise BundleError(
            f"audit of {key}",
            got=f"{len(record_ids)} records for {experiment.experiment_id}",
            need=experiment.records_per_arm,
        )
    check_columns(columns, rung.thinking_budget_tokens, k)
    missing = _missing_samples(columns, record_ids, k)
    rows = tuple(_judge(columns, row, experiment, rung.thinking_budget_tokens) for row in range(len(columns)))
    samples, limits = len(rows), experiment.thresholds
    loops = [row for row in rows if row.verdict == "periodic_loop"]
    unresolved = audit_rate(
        sum(row.verdict == "unresolved" for row in rows), samples, "below", limits.unresolved_rate_below
    )
    looping = audit_rate(len(loops), samples, "at_most", limits.loop_rate_at_most)
    limited = audit_rate(
        sum(row.answer_limit_contact for row in rows), samples, "below", limits.answer_limit_rate_below
    )
    equal = equal_samples(columns)
    return TerminationAudit(
        schema_version=1,
        bundle=key,
        arm=key.arm,
        k=k,
        max_num_seqs=rung.max_num_seqs,
        expected_samples=len(record_ids) * k,
        samples=samples,
        complete=not missing,
        missing=missing,
        adequate=not missing and unresolved.within and looping.within and limited.within,
        stage1_length_finishes=sum(row.stage1_finish_reason == "length" for row in rows),
        forced_interventions=int(columns.forced_close.sum()),
        reasoning_boundary_contacts=sum(row.boundary_contact for row in rows),
        closed_at_edge_contacts=sum(row.ending == "closed_at_edge" for row in rows),
        eos_inside_thinking=sum(row.ending == "eos_inside_thinking" for row in rows),
        answer_restarts_after_natural_close=int(columns.answer_restart.sum()),
        unresolved_cap_contacts=unresolved.contacts,
        periodic_loop_contacts=looping.contacts,
        period_tokens=tuple(sorted(row.period_tokens for row in loops if row.period_tokens is not None)),
        answer_limit_contacts=limited.contacts,
        thinking_tokens=sum(row.thinking_tokens for row in rows),
        tokens_after_onset=sum(row.tokens_after_onset or 0 for row in loops),
        unresolved_cap_contact_rate=unresolved,
        periodic_loop_rate=looping,
        answer_limit_contact_rate=limited,
        answer_max_tokens=experiment.sampling.answer_max_tokens,
        loop_rule=experiment.loop_rule,
        thresholds=limits,
        largest_period_searched_tokens=experiment.loop_rule.max_period_tokens,
        equal_samples=equal,
        warnings=_warnings(columns, rows, bool(equal)),
        selection_uses_decoded_or_scored_content=False,
        selection_uses_token_identity_for_periodicity=True,
        rows=rows,
    )


def _missing_samples(columns: TerminationColumns, record_ids: Sequence[str], k: int) -> tuple[str, ...]:
    """Expected samples that are not here, in order. Raises BundleError on repeated or foreign ones."""
    expected = [(record_id, index) for record_id in record_ids for index in range(k)]
    if len(set(expected)) != len(expected):
        raise BundleError("a record stands twice among the expected ones", need="unique record ids")
    found: set[tuple[str, int]] = set()
    for row in range(len(columns)):
        sample = (columns.record_ids[row], int(columns.sample_indices[row]))
        if sample in found:
            raise BundleError(f"sample {columns.name(row)} stands twice", need="each sample once")
        found.add(sample)
    foreign = sorted(found - set(expected))
    if foreign:
        raise BundleError(
            f"sample {foreign[0][0]}#{foreign[0][1]} is none of this phase",
            got=f"{len(foreign)} such samples",
            need=f"{len(record_ids)} records x {k}",
        )
    return tuple(f"{record_id}#{index}" for record_id, index in expected if (record_id, index) not in found)


def _judge(columns: TerminationColumns, row: int, experiment: Experiment, budget_tokens: int) -> SampleAudit:
    rule, thinking = experiment.loop_rule, int(columns.thinking_tokens[row])
    forced = bool(columns.forced_close[row])
    contact = forced or thinking + 1 >= budget_tokens
    ids = columns.thinking_ids(row)
    match = nearest_lag(ids, rule) if contact and budget_tokens >= rule.min_budget_tokens else None
    loop = is_loop(match, rule)
    onset = onset_token(ids, match.period_tokens, rule) if match and loop else None
    stage2_reason = columns.stage2_finish_reasons[row]
    limit = experiment.sampling.answer_max_tokens
    return SampleAudit(
        record_id=columns.record_ids[row],
        sample_index=int(columns.sample_indices[row]),
        ending=_ending(columns, row, contact),
        stage1_finish_reason=columns.stage1_finish_reasons[row],
        thinking_tokens=thinking,
        boundary_contact=contact,
        verdict="periodic_loop" if loop else "unresolved" if contact else "no_contact",
        period_tokens=match.period_tokens if match and loop else None,
        best_lag_tokens=match.period_tokens if match else None,
        matched_tokens=match.matched_tokens if match else None,
        compared_tokens=match.compared_tokens if match else None,
        onset_token=onset,
        tokens_after_onset=None if onset is None else thinking - onset,
        answer_limit_contact=stage2_reason == "length" or int(columns.stage2_tokens[row]) >= limit,
    )


def _ending(columns: TerminationColumns, row: int, contact: bool) -> Ending:
    """How thinking ended; an EOS inside it comes before the budget, which it may have reached as well."""
    if columns.eos_inside_thinking[row]:
        return "eos_inside_thinking"
    if columns.forced_close[row]:
        return "forced_close"
    return "closed_at_edge" if contact else "natural_close"


def _warnings(columns: TerminationColumns, rows: Sequence[SampleAudit], equal: bool) -> tuple[str, ...]:
    found = []
    if rows and all(row.period_tokens == 1 and row.matched_tokens == row.compared_tokens for row in rows):
        last = sorted({int(columns.thinking_ids(row)[-1]) for row in range(len(rows))})
        ids = ", ".join(map(str, last[:5])) + (", ..." if len(last) > 5 else "")
        found.append(f"every sample ends in one id repeated ({ids}): the engine's numerics are suspect")
    if equal:
        found.append("samples with equal ids: look at their seeds; they are not independent draws")
    return tuple(found)
