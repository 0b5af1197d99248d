"""Phases of an experiment from its verified bundles, audits and preflights, as views.

Takes a root that its caller verified; each audit file is compared with the audit that its bundle gives.
Reads below the data folder only, decodes no text.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fitladder.canonical import parse_model, read_json, sha256_file
from fitladder.errors import LineageError
from fitladder.evidence.audit_bundle import audit_bundle
from fitladder.records.audit import SampleAudit, TerminationAudit
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import PHASES, Experiment, Phase
from fitladder.records.generation_time import generation_s, us_to_s
from fitladder.registry.data_paths import audit_path
from fitladder.report.check_recorded import check_recorded
from fitladder.report.shares import share_of_rate
from fitladder.report.view import (
    Attempt,
    Capacity,
    FileEntry,
    Gate,
    Generation,
    Graphs,
    PhaseView,
    Sample,
    SampleKind,
    Termination,
)
from fitladder.report.words import count, sizes
from fitladder.store.verify_bundle import VerifiedBundle, VerifiedPreflight
from fitladder.store.verify_root import VerifiedRoot

__all__ = ["bundle_phases", "recorded_audits"]

KIND_OF_ENDING: dict[str, SampleKind] = {
    "natural_close": "complete",
    "closed_at_edge": "unresolved contact",
    "forced_close": "unresolved contact",
    "eos_inside_thinking": "ended inside thinking",
}


def bundle_phases(
    data_dir: Path,
    experiment: Experiment,
    root: VerifiedRoot | None,
    audits: Mapping[BundleKey, TerminationAudit],
) -> tuple[PhaseView, ...]:
    """Every phase that ran or was begun, and each rung's probe even where it did not, in ladder order.

    Args:
        data_dir: the data folder that holds the audit files, whose SHA-256 the page shows.
        experiment: the registered experiment.
        root: its verified bundles; None where no phase was begun.
        audits: as `recorded_audits` found them.
    """
    begun: tuple[VerifiedBundle | VerifiedPreflight, ...] = (*root.preflights, *root.bundles) if root else ()
    attempts: dict[BundleKey, list[VerifiedBundle | VerifiedPreflight]] = {}
    for one in sorted(begun, key=lambda one: one.preflight.attempt):
        attempts.setdefault(one.key, []).append(one)
    found = {
        (key.thinking_budget_tokens, key.phase): replace(
            _phase(data_dir, newest, audits.get(key)), interrupted=tuple(map(_attempt, earlier))
        )
        for key, (*earlier, newest) in attempts.items()
    }
    ordered: list[PhaseView] = []
    for rung in experiment.rungs:
        for phase in PHASES:
            key = (rung.thinking_budget_tokens, phase)
            if key in found:
                ordered.append(found[key])
            elif phase == "probe":
                ordered.append(_not_run(experiment, rung.thinking_budget_tokens, phase))
    return tuple(ordered)


def recorded_audits(
    data_dir: Path, experiment: Experiment, root: VerifiedRoot | None
) -> dict[BundleKey, TerminationAudit]:
    """The audit file of every complete bundle that has one, compared with what the bundle gives.

    Args:
        data_dir: the data folder that holds the audit files.
        experiment: the registered experiment.
        root: its verified bundles; None where no phase was begun.

    Raises LineageError naming the first field that the bundle does not give.
    """
    found = [_audit(data_dir, experiment, bundle) for bundle in root.bundles] if root else []
    return {audit.bundle: audit for audit in found if audit is not None}


def _not_run(experiment: Experiment, budget: int, phase: Phase) -> PhaseView:
    key = BundleKey(experiment_id=experiment.experiment_id, thinking_budget_tokens=budget, phase=phase)
    return PhaseView(
        thinking_budget_tokens=budget,
        phase=phase,
        arm=key.arm,
        state="not run",
        k=experiment.k(phase),
        records=experiment.records_per_arm,
        max_num_seqs=experiment.rung(budget).max_num_seqs,
    )


def _phase(
    data_dir: Path, one: VerifiedBundle | VerifiedPreflight, audit: TerminationAudit | None
) -> PhaseView:
    preflight, key = one.preflight, one.key
    gates = {str(gate["name"]): dict(gate["numbers"]) for gate in preflight.gates}
    complete = isinstance(one, VerifiedBundle)
    files = one.files if isinstance(one, VerifiedBundle) else {"preflight.json": one.file}
    return PhaseView(
        thinking_budget_tokens=key.thinking_budget_tokens,
        phase=key.phase,
        arm=key.arm,
        state="complete" if complete else "preflight only",
        k=preflight.k,
        records=preflight.records,
        max_num_seqs=preflight.engine.max_num_seqs,
        capacity=_capacity(gates.get("kv_fit", {})),
        graphs=_graphs(gates.get("cuda_graphs", {})),
        generation=_generation(one) if isinstance(one, VerifiedBundle) else None,
        termination=_termination(audit) if audit else None,
        gates=tuple(
            Gate(name, tuple((figure, _shown(value)) for figure, value in numbers.items()))
            for name, numbers in gates.items()
        ),
        files=tuple(FileEntry(name, record.bytes, record.sha256) for name, record in sorted(files.items())),
        go_sha256=preflight.go_sha256,
        go_identity=preflight.go_identity,
        binding_sha256=preflight.binding.binding_sha256,
        audit_sha256=sha256_file(audit_path(data_dir, key)) if audit else None,
        flags=tuple(one.receipt.flags) if isinstance(one, VerifiedBundle) else (),
        folder=one.relative_path,
    )


def _attempt(one: VerifiedBundle | VerifiedPreflight) -> Attempt:
    """An attempt that another followed: by the root's verification a preflight, no bundle."""
    file = one.files["preflight.json"] if isinstance(one, VerifiedBundle) else one.file
    return Attempt(
        number=one.preflight.attempt,
        folder=one.relative_path,
        preflight=FileEntry("preflight.json", file.bytes, file.sha256),
        go_sha256=one.preflight.go_sha256,
    )


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    if isinstance(value, list | tuple):
        return sizes(value)
    return "none" if value is None else str(value)


def _capacity(numbers: dict[str, Any]) -> Capacity | None:
    if not numbers:
        return None
    return Capacity(
        kv_cache_size_tokens=numbers["kv_cache_size_tokens"],
        block_size_tokens=numbers["block_size_tokens"],
        active_sequences=numbers["active_sequences"],
        rounded_tokens_per_sequence=numbers["rounded_tokens_per_sequence"],
        required_tokens=numbers["required_tokens"],
        margin_tokens=numbers["margin_tokens"],
        usable_blocks=numbers["usable_blocks"],
        required_blocks=numbers["required_blocks"],
        margin_blocks=numbers["margin_blocks"],
        tokens_decide=numbers["kv_rule"] != "block",
    )


def _graphs(numbers: dict[str, Any]) -> Graphs | None:
    if not numbers:
        return None
    requested, resolved = numbers["requested_sizes"], numbers["resolved_sizes"]
    return Graphs(
        mode=numbers["capture"],
        requested=None if requested is None else tuple(requested),
        max_requested=numbers["requested_max"],
        resolved=tuple(resolved or ()),
        uncovered=numbers["uncovered_widths"],
        decode_mode=numbers["decode_graph_mode"],
        full=numbers["has_full_graphs"],
    )


def _generation(bundle: VerifiedBundle) -> Generation:
    totals, counters = bundle.receipt.totals, bundle.receipt.counters
    return Generation(
        sampled_tokens=totals.sampled_tokens,
        generation_s=generation_s(totals),
        load_s=us_to_s(bundle.engine.engine_load_us),
        preemptions=counters["preemptions"],
        recomputed_tokens=counters.get("recomputed_tokens"),
        warnings=tuple(bundle.engine.warnings),
    )


def _audit(data_dir: Path, experiment: Experiment, bundle: VerifiedBundle) -> TerminationAudit | None:
    """The audit file of this bundle, recomputed to compare; None before it was made. Raises LineageError."""
    path = audit_path(data_dir, bundle.key)
    if not path.is_file():
        return None
    recorded = parse_model(TerminationAudit, read_json(path), where=str(path), error=LineageError)
    recomputed = audit_bundle(bundle, experiment)
    do = f"the bundle gives another audit: run `fitladder stage audit {bundle.key.experiment_id}`"
    check_recorded(recorded, recomputed, path, long_field="rows", source="bundle", do=do)
    return recorded


def _termination(audit: TerminationAudit) -> Termination:
    notes = list(audit.warnings)
    if audit.missing:
        notes.append(f"incomplete: {len(audit.missing)} of {audit.expected_samples} samples are missing")
    if audit.eos_inside_thinking:
        notes.append(f"{audit.eos_inside_thinking} samples ended inside thinking by an end-of-sequence token")
    return Termination(
        samples=audit.samples,
        boundary_contacts=audit.reasoning_boundary_contacts,
        forced_closes=audit.forced_interventions,
        answer_restarts_after_natural_close=audit.answer_restarts_after_natural_close,
        shares=(
            share_of_rate("loops", audit.periodic_loop_rate),
            share_of_rate("unresolved", audit.unresolved_cap_contact_rate),
            share_of_rate("answer limit", audit.answer_limit_contact_rate),
        ),
        adequate=audit.adequate,
        periods_tokens=audit.period_tokens,
        rows=tuple(_sample(row) for row in audit.rows),
        burned_tokens=audit.tokens_after_onset,
        thinking_tokens=audit.thinking_tokens,
        tail_tokens=audit.loop_rule.tail_tokens,
        max_period_tokens=audit.largest_period_searched_tokens,
        notes=tuple(notes),
    )


def _sample(row: SampleAudit) -> Sample:
    loop = row.verdict == "periodic_loop"
    kind: SampleKind = "periodic loop" if loop else KIND_OF_ENDING[row.ending]
    return Sample(
        sample_id=f"{row.record_id}#{row.sample_index}",
        kind=kind,
        thinking_tokens=row.thinking_tokens,
        period_tokens=row.period_tokens,
        matched=row.matched_tokens,
        compared=row.compared_tokens,
        onset_token=row.onset_token,
        burned_tokens=row.tokens_after_onset,
    )
