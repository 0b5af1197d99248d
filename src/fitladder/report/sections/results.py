"""Results section: every phase at a glance, with its charts."""

from fitladder.report.charts.capacity import CoverageBar, DemandBar, coverage_chart, demand_chart
from fitladder.report.charts.termination import RungShares, termination_chart
from fitladder.report.charts.throughput import ThroughputPoint, comparison_chart, throughput_chart
from fitladder.report.document import Block, Callout, FigureBlock, Heading, Section, Table
from fitladder.report.view import ExperimentView, Graphs, PhaseView, Termination
from fitladder.report.words import NOT_RECORDED, NOT_RUN, count, fixed, sizes

__all__ = ["results_section"]


def results_section(view: ExperimentView) -> Section:
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
        for plan in view.refused_widths
    ]
    return planned + [
        DemandBar(
            f"{phase.label}, {phase.capacity.active_sequences} wide",
            *phase.capacity.demand_and_pool_tokens,
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
