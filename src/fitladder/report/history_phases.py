"""Phases of a recorded experiment from its registered figures, checked against their own arithmetic.

No row was kept of it, so no loop timeline can be drawn; the page says so. Pure.
"""

from fitladder.capacity.capture_coverage import render_widths, uncovered_widths
from fitladder.errors import InputRefused
from fitladder.records.experiment import Experiment
from fitladder.records.history import History, RecordedGeneration, RecordedPhase, history_path, load_history
from fitladder.report.shares import shares
from fitladder.report.view import (
    Capacity,
    FileEntry,
    Gate,
    Generation,
    Graphs,
    PhaseView,
    Selection,
    Termination,
)
from fitladder.report.words import NOT_RECORDED, count, sizes

__all__ = ["History", "history_path", "history_phases", "history_selection", "load_history"]


def history_phases(history: History, experiment: Experiment) -> tuple[PhaseView, ...]:
    """The phases of `history`, checked against the rungs of `experiment` and their own arithmetic.

    Raises InputRefused naming the phase and the figure.
    """
    return tuple(_phase(record, experiment, history) for record in history.phases)


def _phase(record: RecordedPhase, experiment: Experiment, history: History) -> PhaseView:
    where = f"{experiment.experiment_id} {record.phase}@{record.thinking_budget_tokens} in data/history"
    try:
        rung = experiment.rung(record.thinking_budget_tokens)
    except KeyError:
        raise InputRefused(
            f"{where}: budget", got=record.thinking_budget_tokens, need="a registered rung"
        ) from None
    registered = {
        "max_num_seqs": (record.max_num_seqs, rung.max_num_seqs),
        "k": (record.k, experiment.k(record.phase)),
        "records": (record.records, experiment.records_per_arm),
    }
    for name, (got, need) in registered.items():
        if got != need:
            raise InputRefused(f"{where}: {name}", got=got, need=need)
    capacity = _capacity(record, where)
    return PhaseView(
        thinking_budget_tokens=record.thinking_budget_tokens,
        phase=record.phase,
        arm=record.arm,
        state="complete" if record.state == "complete" else "preflight only",
        k=record.k,
        records=record.records,
        max_num_seqs=record.max_num_seqs,
        capacity=capacity,
        graphs=_graphs(record),
        generation=_generation(record.generation),
        termination=_termination(record, experiment, where),
        gates=_gates(record, capacity),
        files=tuple(FileEntry(name, item.bytes, item.sha256) for name, item in sorted(record.files.items())),
        binding_sha256=history.binding_sha256,
        audit_sha256=record.audit_sha256,
    )


def _capacity(record: RecordedPhase, where: str) -> Capacity:
    figures, active = record.capacity, min(record.records * record.k, record.max_num_seqs)
    if figures.required_tokens != active * figures.rounded_tokens_per_sequence:
        raise InputRefused(
            f"{where}: required_tokens",
            got=figures.required_tokens,
            need=active * figures.rounded_tokens_per_sequence,
        )
    if figures.margin_tokens != figures.kv_cache_size_tokens - figures.required_tokens:
        raise InputRefused(
            f"{where}: margin_tokens",
            got=figures.margin_tokens,
            need=figures.kv_cache_size_tokens - figures.required_tokens,
        )
    return Capacity(
        kv_cache_size_tokens=figures.kv_cache_size_tokens,
        block_size_tokens=figures.block_size_tokens,
        active_sequences=active,
        rounded_tokens_per_sequence=figures.rounded_tokens_per_sequence,
        required_tokens=figures.required_tokens,
        margin_tokens=figures.margin_tokens,
    )


def _graphs(record: RecordedPhase) -> Graphs:
    capture = record.capture
    resolved = capture.resolved
    return Graphs(
        mode=capture.mode,
        requested=capture.requested,
        max_requested=capture.max_requested,
        resolved=resolved,
        uncovered=render_widths(uncovered_widths(resolved, record.max_num_seqs))
        if resolved
        else NOT_RECORDED,
        decode_mode=capture.decode_graph_mode,
        full=capture.has_full_graphs,
    )


def _generation(record: RecordedGeneration | None) -> Generation | None:
    if record is None:
        return None
    late = ("late compilation warnings fall into the generation seconds",) if record.late_jit_warnings else ()
    return Generation(
        sampled_tokens=record.sampled_tokens,
        generation_s=record.generation_s,
        load_s=record.load_s,
        preemptions=None,
        recomputed_tokens=None,
        warnings=late,
    )


def _termination(record: RecordedPhase, experiment: Experiment, where: str) -> Termination | None:
    found = record.termination
    if found is None:
        return None
    for got, need, name in (
        (found.samples, record.records * record.k, "samples"),
        (len(found.periods_tokens), found.loops, "periods_tokens"),
        (found.loops + found.unresolved, found.boundary_contacts, "loops + unresolved"),
    ):
        if got != need:
            raise InputRefused(f"{where}: {name}", got=got, need=need)
    three = shares(
        found.loops, found.unresolved, found.answer_limit_contacts, found.samples, experiment.thresholds
    )
    return Termination(
        samples=found.samples,
        boundary_contacts=found.boundary_contacts,
        forced_closes=found.forced_closes,
        answer_restarts_after_natural_close=found.answer_restarts_after_natural_close,
        shares=three,
        adequate=all(share.within for share in three),
        periods_tokens=tuple(sorted(found.periods_tokens)),
        rows=(),
        burned_tokens=None,
        thinking_tokens=None,
        tail_tokens=experiment.loop_rule.tail_tokens,
        max_period_tokens=experiment.loop_rule.max_period_tokens,
    )


def _gates(record: RecordedPhase, capacity: Capacity) -> tuple[Gate, ...]:
    """The live figures that history kept of the two engine gates."""
    capture = record.capture
    return (
        Gate(
            "kv_fit",
            (
                ("kv_cache_size_tokens", count(capacity.kv_cache_size_tokens)),
                ("block_size_tokens", count(capacity.block_size_tokens)),
                ("active_sequences", count(capacity.active_sequences)),
                ("rounded_tokens_per_sequence", count(capacity.rounded_tokens_per_sequence)),
                ("required_tokens", count(capacity.required_tokens)),
                ("margin_tokens", count(capacity.margin_tokens)),
            ),
        ),
        Gate(
            "cuda_graphs",
            (
                ("capture", capture.mode),
                (
                    "requested",
                    sizes(capture.requested) if capture.requested else f"max {capture.max_requested}",
                ),
                ("resolved_sizes", sizes(capture.resolved)),
                ("decode_graph_mode", capture.decode_graph_mode or NOT_RECORDED),
            ),
        ),
    )


def history_selection(history: History) -> Selection | None:
    """The recorded end of the ladder, or None where it was stopped before one."""
    found = history.selection
    if found is None:
        return None
    return Selection(found.passed, found.selected_thinking_budget_tokens, found.sha256, "")
