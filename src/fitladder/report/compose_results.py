"""What came out? The results at a glance with their charts, and the audit of every rung."""

from fitladder.report.charts.capacity import CoverageBar, DemandBar, coverage_chart, demand_chart
from fitladder.report.charts.termination import RungShares, period_chart, termination_chart
from fitladder.report.charts.throughput import ThroughputPoint, comparison_chart, throughput_chart
from fitladder.report.charts.timeline import timeline_chart
from fitladder.report.document import (
    Block,
    Callout,
    Facts,
    FigureBlock,
    Heading,
    Para,
    Section,
    Table,
    Tone,
)
from fitladder.report.view import ExperimentView, Graphs, PhaseView, Share, Termination
from fitladder.report.words import NOT_RECORDED, NOT_RUN, count, duration, fixed, percent, sizes

__all__ = ["audit_section", "glance_section", "share_sentence", "timeline_words"]


def glance_section(view: ExperimentView) -> Section:
    """One table row a phase, then the pictures."""
    rows = list(zip(GLANCE_ROWS, *(_glance_column(phase, view) for phase in view.phases), strict=True))
    if any(phase.interrupted for phase in view.phases):
        rows.insert(1, ("Attempt", *map(_attempt, view.phases)))
    blocks: list[Block] = [
        Table(
            "Every phase of every registered rung",
            ("figure", *(phase.label for phase in view.phases)),
            tuple(rows),
            row_headers=True,
        )
    ]
    charts = []
    if demands := _demands(view):
        charts.append(demand_chart(demands))
    if covers := _coverages(view):
        charts.append(coverage_chart(covers))
    if view.complete:
        charts.append(termination_chart([_rung_shares(phase) for phase in view.complete]))
    if points := _points(view):
        charts.append(throughput_chart(points))
    if charts:
        blocks.append(FigureBlock(tuple(charts)))
    else:
        blocks.append(Callout("No phase has run yet, so there is nothing to draw.", "open"))
    if view.comparisons:
        chart = comparison_chart(view.comparisons)
        blocks += [
            Heading("Across experiments, descriptive only"),
            FigureBlock((chart,)),
        ]
    return Section("glance", "Results at a glance", tuple(blocks))


GLANCE_ROWS = (
    "State",
    "Width (max_num_seqs)",
    "Capture sizes requested",
    "Capture sizes resolved",
    "Widths without a graph",
    "Live KV tokens (block)",
    "Required KV tokens",
    "Margin",
    "Periodic loops",
    "Unresolved contacts",
    "Answer-limit contacts",
    "Sampled tokens",
    "Generation seconds",
    "Tokens a second",
    "Preemptions",
    "Outcome",
)


def _glance_column(phase: PhaseView, view: ExperimentView) -> tuple[str, ...]:
    graphs, capacity, audit, made = phase.graphs, phase.capacity, phase.termination, phase.generation
    blank = NOT_RUN if phase.state == "not run" else NOT_RECORDED
    unmade = "no row" if phase.state == "preflight only" else blank
    unjudged = "not audited" if phase.state == "complete" else unmade
    return (
        phase.state,
        str(phase.max_num_seqs),
        _asked(phase),
        sizes(graphs.resolved) if graphs else blank,
        _uncovered(graphs) if graphs else blank,
        f"{count(capacity.kv_cache_size_tokens)} ({capacity.block_size_tokens})" if capacity else blank,
        count(capacity.required_tokens) if capacity else blank,
        count(capacity.margin_tokens) if capacity else blank,
        *(_of(audit, name) if audit else unjudged for name in ("loops", "unresolved", "answer limit")),
        count(made.sampled_tokens) if made else unmade,
        fixed(made.generation_s) if made else unmade,
        fixed(made.tokens_per_s) if made else unmade,
        count(made.preemptions) if made else unmade,
        _outcome(phase, audit, view),
    )


def _attempt(phase: PhaseView) -> str:
    if phase.state == "not run":
        return NOT_RUN
    return f"{phase.attempt} ({len(phase.interrupted)} interrupted)" if phase.interrupted else "1"


def _outcome(phase: PhaseView, audit: Termination | None, view: ExperimentView) -> str:
    if audit is not None:
        return "adequate" if audit.adequate else "rung rejected"
    if phase.state == "preflight only":
        return "interrupted; experiment stopped" if view.state == "stopped" else "open: no receipt yet"
    return "not audited" if phase.state == "complete" else NOT_RUN


def _uncovered(graphs: Graphs) -> str:
    return "all: eager, as registered" if graphs.mode == "none" else graphs.uncovered


def _asked(phase: PhaseView) -> str:
    graphs = phase.graphs
    if graphs is None:
        return NOT_RUN
    if graphs.mode == "none":
        return "none"
    if graphs.requested:
        return f"{sizes(graphs.requested)}, {graphs.mode}"
    return f"max {graphs.max_requested}, {graphs.mode}" if graphs.max_requested else graphs.mode


def _of(audit: Termination, name: str) -> str:
    share = next(share for share in audit.shares if share.name == name)
    return f"{share.count} of {share.total}"


def _demands(view: ExperimentView) -> list[DemandBar]:
    planned = [
        DemandBar(plan.label, plan.required_tokens, plan.kv_cache_size_tokens, generated=False)
        for plan in view.refused_plans
    ]
    return planned + [
        DemandBar(
            f"{phase.label}, {phase.capacity.active_sequences} wide",
            phase.capacity.required_tokens,
            phase.capacity.kv_cache_size_tokens,
            generated=phase.state == "complete",
        )
        for phase in view.phases
        if phase.capacity
    ]


def _coverages(view: ExperimentView) -> list[CoverageBar]:
    return [
        CoverageBar(
            phase.label, phase.capacity.active_sequences, phase.graphs.resolved, phase.graphs.uncovered
        )
        for phase in view.phases
        if phase.graphs and phase.capacity
    ]


def _rung_shares(phase: PhaseView) -> RungShares:
    return RungShares(phase.label, phase.termination.shares if phase.termination else ())


def _points(view: ExperimentView) -> list[ThroughputPoint]:
    own = [
        ThroughputPoint(
            phase.label,
            phase.max_num_seqs,
            phase.generation.tokens_per_s,
            phase.generation.preemptions,
            phase.capacity is None or phase.capacity.fits,
        )
        for phase in view.phases
        if phase.generation
    ]
    others = [
        ThroughputPoint(
            f"{row.experiment_id}, {row.thinking_budget_tokens:,} budget",
            row.max_num_seqs,
            row.tokens_per_s,
            None,
            row.required_tokens <= row.kv_cache_size_tokens,
        )
        for row in view.comparisons
        if row.experiment_id != view.experiment_id
    ]
    return own + others if own else []


def audit_section(view: ExperimentView) -> Section:
    """Phase by phase: the content-blind audit, its timeline and its periods."""
    blocks: list[Block] = [
        Para(
            "The audit reads counts, finish metadata and token ids. It reads no text, no parser output, no "
            "correctness and no hidden example."
        )
    ]
    groups = []
    for phase in view.phases:
        blocks.append(Heading(f"{phase.label[0].upper()}{phase.label[1:]}"))
        blocks += _attempts(phase)
        if phase.termination is None:
            blocks.append(Callout(_why_no_audit(phase), "open"))
            continue
        groups.append((phase.label, phase.termination.periods_tokens))
        blocks += _audit_blocks(phase, phase.termination)
    if groups:
        largest = view.complete[0].termination
        blocks.append(FigureBlock((period_chart(groups, largest.max_period_tokens if largest else 0),)))
    return Section("audit", "Audit, rung by rung", tuple(blocks))


def _attempts(phase: PhaseView) -> list[Block]:
    """Nothing for a phase that was begun once."""
    if not phase.interrupted:
        return []
    return [
        Callout(
            f"This is attempt {phase.attempt}, in {phase.folder}. It began at the first row under its own "
            "GO; no row of an interrupted attempt was kept, and each of their GOs is used.",
            "note",
        ),
        Table(
            f"Interrupted attempts at the {phase.label}, as its preflight names them",
            ("attempt", "folder", "preflight, SHA-256", "GO, SHA-256"),
            tuple(
                (str(one.number), one.folder, one.preflight.sha256, one.go_sha256 or NOT_RECORDED)
                for one in phase.interrupted
            ),
        ),
    ]


def _why_no_audit(phase: PhaseView) -> str:
    if phase.state == "preflight only":
        return "Preflight only: the live gates passed, then the phase ended before any row: nothing to audit."
    return "Not run: no bundle exists, so there is nothing to audit."


def _audit_blocks(phase: PhaseView, audit: Termination) -> list[Block]:
    tone: Tone = "good" if audit.adequate else "bad"
    blocks: list[Block] = [
        Callout(
            ("Adequate: " if audit.adequate else "Not adequate: ")
            + "; ".join(share_sentence(share) for share in audit.shares)
            + ".",
            tone,
        ),
        Facts(
            (
                ("Samples", count(audit.samples)),
                (
                    "Boundary contacts",
                    f"{count(audit.boundary_contacts)}, of them forced closes {audit.forced_closes}",
                ),
                ("Answer restarts after a natural close", count(audit.answer_restarts_after_natural_close)),
                ("Thinking tokens burned in loops", _burned(audit)),
                ("Generation", _speed(phase)),
                ("Preemptions", count(phase.generation.preemptions if phase.generation else None)),
                ("Periods", " ".join(map(str, audit.periods_tokens)) or "no loop"),
            )
        ),
    ]
    blocks += [Para(note) for note in audit.notes]
    if phase.generation:
        blocks += [Para(f"Noted by the engine: {warning}") for warning in phase.generation.warnings]
    if audit.rows:
        name = f"timeline-{phase.thinking_budget_tokens}-{phase.phase}"
        blocks.append(
            FigureBlock((timeline_chart(phase.label, audit.rows, phase.thinking_budget_tokens, name=name),))
        )
    else:
        blocks.append(
            Para(
                "Loop timeline: not drawn. The record of this phase keeps totals and periods; where each "
                f"loop began was {NOT_RECORDED}."
            )
        )
    return blocks


def timeline_words() -> str:
    """What a loop timeline shows, in one sentence."""
    return (
        "One row a sample, from its first thinking token. Hatched, from the onset on, it only repeats "
        "itself: everything there was burned."
    )


def share_sentence(share: Share) -> str:
    """`loops 37 of 48 (77.1 %, 95 % interval 63.5 % to 86.7 %), ceiling at most 25 %, exceeded`."""
    return (
        f"{share.name} {share.count} of {share.total} ({percent(share.count / (share.total or 1))}, "
        f"95\u00a0% interval {percent(share.low)} to {percent(share.high)}), ceiling {share.ceiling_text}, "
        f"{'within' if share.within else 'exceeded'}"
    )


def _burned(audit: Termination) -> str:
    if audit.burned_tokens is None:
        return NOT_RECORDED
    of = audit.thinking_tokens or 0
    return f"{count(audit.burned_tokens)} of {count(of)} ({percent(audit.burned_tokens / (of or 1))})"


def _speed(phase: PhaseView) -> str:
    made = phase.generation
    if made is None:
        return NOT_RECORDED
    load = f"; model load {fixed(made.load_s)} s apart from it" if made.load_s is not None else ""
    return (
        f"{count(made.sampled_tokens)} sampled tokens in {fixed(made.generation_s)} s "
        f"({duration(made.generation_s)}) = {fixed(made.tokens_per_s)} tokens/s{load}"
    )
