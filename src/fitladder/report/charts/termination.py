"""Thinking, or looping? Shares against ceilings, the loop timeline, and the periods of the loops."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fitladder.report.charts.canvas import (
    ANSWER,
    FIT,
    GRID,
    INK,
    LIMIT,
    LOOP,
    MUTED,
    PAPER,
    UNRESOLVED,
    Chart,
    axes_grid,
    figure,
    in_style,
    plain_axes,
    render_svg,
)
from fitladder.report.view import Sample, Share
from fitladder.report.words import count, elide, percent

__all__ = ["RungShares", "period_chart", "termination_chart", "timeline_chart"]

STYLE_OF_SHARE = {
    "loops": (LOOP, "////"),
    "unresolved": (UNRESOLVED, "xxxx"),
    "answer limit": (ANSWER, "\\\\\\\\"),
}
SHARE_WORDS = {"loops": "periodic loops", "unresolved": "unresolved contacts", "answer limit": "answer limit"}
MAX_TIMELINE_ROWS = 160
LABEL_CHARACTERS = 60


@dataclass(frozen=True)
class RungShares:
    """The three shares of one audited phase."""

    label: str
    shares: tuple[Share, ...]


@in_style
def termination_chart(rungs: Sequence[RungShares]) -> Chart:
    """Three bars a rung with 95 % intervals; a heavy mark on each is its registered ceiling."""
    row_in, head_in = 0.38, 0.34
    height = sum(head_in + row_in * len(rung.shares) for rung in rungs) + 0.6
    made = figure(height)
    axes = axes_grid(made, (1.45, 0.5, 3.4, height - 0.6))
    plain_axes(axes)
    y, ticks, labels = 0.0, [], []
    for rung in rungs:
        axes.text(
            -0.43, y + 0.1, elide(rung.label, LABEL_CHARACTERS), fontsize=9, fontweight="bold", va="center"
        )
        y -= head_in / row_in
        for share in rung.shares:
            _share_bar(axes, y, share)
            ticks.append(y)
            labels.append(SHARE_WORDS[share.name])
            y -= 1
    axes.set_xlim(0, 1.04)
    axes.set_ylim(y + 0.4, 0.45)
    axes.set_yticks(ticks, labels)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:.0f} %"))
    axes.set_xlabel("of samples; heavy mark: ceiling; line: 95 % interval")
    return Chart(
        name="termination",
        title="The three termination shares against their ceilings",
        svg=render_svg(made, "termination"),
        alt=" ".join(
            f"{rung.label}: " + "; ".join(_share_sentence(share) for share in rung.shares) + "."
            for rung in rungs
        ),
        columns=("phase", "share", "count", "rate", "95 % interval", "ceiling", "within"),
        rows=tuple(
            (
                rung.label,
                SHARE_WORDS[share.name],
                f"{share.count} of {share.total}",
                percent(share.count / (share.total or 1)),
                f"{percent(share.low)} to {percent(share.high)}",
                share.ceiling_text,
                "yes" if share.within else "no",
            )
            for rung in rungs
            for share in rung.shares
        ),
        note="Adequacy is decided by integers; the Wilson intervals decide nothing.",
    )


def _share_bar(axes: Axes, y: float, share: Share) -> None:
    colour, hatch = STYLE_OF_SHARE[share.name]
    rate = share.count / (share.total or 1)
    axes.barh(y, rate, height=0.6, facecolor=PAPER, edgecolor=colour, hatch=hatch, linewidth=1.2)
    axes.plot([share.low, share.high], [y, y], color=INK, linewidth=1.6, marker="|", markersize=7)
    axes.plot([share.ceiling] * 2, [y - 0.42, y + 0.42], color=LIMIT, linewidth=2.8)
    right = share.high > 0.72
    axes.text(
        (share.low if right else max(share.high, share.ceiling)) + (-0.02 if right else 0.02),
        y,
        f"{share.count}/{share.total}" + (" ok" if share.within else " over"),
        ha="right" if right else "left",
        va="center",
        fontsize=8.5,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.2},
    )


def _share_sentence(share: Share) -> str:
    return (
        f"{SHARE_WORDS[share.name]} {share.count} of {share.total}, "
        f"{percent(share.count / (share.total or 1))} "
        f"(95 % interval {percent(share.low)} to {percent(share.high)}), ceiling {share.ceiling_text}, "
        f"{'within' if share.within else 'exceeded'}"
    )


@in_style
def timeline_chart(label: str, samples: Sequence[Sample], budget_tokens: int, *, name: str) -> Chart:
    """One row a sample: thinking up to the onset of its loop, the looped rest, and the budget edge.

    At most MAX_TIMELINE_ROWS rows are drawn (the table has as many); the note says how many were left out.
    """
    shown = samples[:MAX_TIMELINE_ROWS]
    row_in = 0.17 if len(shown) <= 48 else 0.09
    height = row_in * len(shown) + 1.0
    made = figure(height)
    axes = axes_grid(made, (0.45, 0.5, 4.35, row_in * len(shown) + 0.05))
    plain_axes(axes)
    edge = max([budget_tokens, *(sample.thinking_tokens for sample in shown)])
    for y, sample in enumerate(shown):
        _sample_row(axes, y, sample)
    axes.plot([budget_tokens] * 2, [-0.8, len(shown) - 0.2], color=LIMIT, linewidth=2.2)
    axes.set_xlim(0, edge * 1.02)
    axes.set_ylim(len(shown) - 0.2, -0.8)
    step = max(1, -(-len(shown) // 12))
    axes.set_yticks(range(0, len(shown), step), [str(n + 1) for n in range(0, len(shown), step)])
    axes.set_ylabel("sample")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("thinking token")
    _timeline_key(made, height)
    burned = sum(sample.burned_tokens or 0 for sample in samples)
    total = sum(sample.thinking_tokens for sample in samples)
    loops = sum(sample.kind == "periodic loop" for sample in samples)
    left_out = len(samples) - len(shown)
    return Chart(
        name=name,
        title=f"Loop timeline, {label}",
        svg=render_svg(made, name),
        alt=f"{label}: one row for each of {len(samples)} samples. {loops} end in a periodic loop; "
        f"{burned:,} of {total:,} thinking tokens ({percent(burned / (total or 1))}) follow an onset.",
        columns=(
            "no.",
            "sample",
            "class",
            "thinking tokens",
            "period",
            "match",
            "onset token",
            "burned tokens",
        ),
        rows=tuple(_sample_cells(number, sample) for number, sample in enumerate(shown, start=1)),
        note=f"{left_out} further samples are in the audit and not drawn here." if left_out else "",
    )


def _sample_row(axes: Axes, y: int, sample: Sample) -> None:
    end, onset = sample.thinking_tokens, sample.onset_token
    if sample.kind == "periodic loop" and onset is not None:
        axes.barh(y, onset, height=0.62, facecolor=GRID, edgecolor=MUTED, linewidth=0.5)
        axes.barh(
            y,
            end - onset,
            left=onset,
            height=0.62,
            facecolor=PAPER,
            edgecolor=LOOP,
            hatch="//////",
            linewidth=0.8,
        )
        axes.plot([onset], [y], marker="|", color=LOOP, markersize=9, markeredgewidth=2)
    elif sample.kind == "complete":
        axes.barh(y, end, height=0.62, facecolor=FIT, edgecolor=FIT, linewidth=0.5)
        axes.plot([end], [y], marker="o", color=FIT, markersize=4)
    else:
        axes.barh(y, end, height=0.62, facecolor=GRID, edgecolor=MUTED, linewidth=0.5)
        marker = "x" if sample.kind == "unresolved contact" else "s"
        axes.plot([end], [y], marker=marker, color=UNRESOLVED, markersize=4.5, markeredgewidth=1.4)


def _timeline_key(made: Figure, height: float) -> None:
    axes = axes_grid(made, (0.45, height - 0.38, 4.35, 0.34))
    axes.set_axis_off()
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 2)
    axes.barh(1.5, 4, left=0, height=0.6, facecolor=GRID, edgecolor=MUTED, linewidth=0.5)
    axes.barh(1.5, 4, left=26, height=0.6, facecolor=PAPER, edgecolor=LOOP, hatch="//////", linewidth=0.8)
    axes.plot([62, 62], [1.1, 1.9], color=LIMIT, linewidth=2.2)
    axes.plot([2], [0.5], marker="o", color=FIT, markersize=4)
    axes.plot([28], [0.5], marker="x", color=UNRESOLVED, markersize=4.5, markeredgewidth=1.4)
    axes.plot([62], [0.5], marker="s", color=UNRESOLVED, markersize=4.5)
    for x, y, words in (
        (6, 1.5, "thinking"),
        (32, 1.5, "looping from onset"),
        (65, 1.5, "budget edge"),
        (6, 0.5, "closed by itself"),
        (32, 0.5, "unresolved contact"),
        (65, 0.5, "other end"),
    ):
        axes.text(x, y, words, va="center", fontsize=8)


def _sample_cells(number: int, sample: Sample) -> tuple[str, ...]:
    match = f"{sample.matched}/{sample.compared}" if sample.matched is not None else "none"
    return (
        str(number),
        sample.sample_id,
        sample.kind,
        count(sample.thinking_tokens),
        "none" if sample.period_tokens is None else count(sample.period_tokens),
        match,
        "none" if sample.onset_token is None else count(sample.onset_token),
        "none" if sample.burned_tokens is None else count(sample.burned_tokens),
    )


@in_style
def period_chart(groups: Sequence[tuple[str, tuple[int, ...]]], max_period_tokens: int) -> Chart:
    """Loops by their period, in bins that double, one panel a phase."""
    edges = [1]
    while edges[-1] <= max_period_tokens:
        edges.append(edges[-1] * 2)
    names = [
        str(low) if high - low == 1 else f"{low}-{min(high - 1, max_period_tokens)}"
        for low, high in pairwise(edges)
    ]
    counts = [
        [sum(low <= period < high for period in periods) for low, high in pairwise(edges)]
        for _, periods in groups
    ]
    panel_in = 1.35
    height = panel_in * len(groups) + 0.75
    made = figure(height)
    most = max([1, *(number for row in counts for number in row)])
    for index, ((label, periods), row) in enumerate(zip(groups, counts, strict=True)):
        bottom = 0.72 + panel_in * (len(groups) - 1 - index)
        axes = axes_grid(made, (0.4, bottom, 4.4, panel_in - 0.4))
        plain_axes(axes, grid="y")
        axes.bar(
            range(len(row)), row, width=0.72, facecolor=PAPER, edgecolor=LOOP, hatch="////", linewidth=1.2
        )
        for x, number in enumerate(row):
            if number:
                axes.text(x, number, str(number), ha="center", va="bottom", fontsize=8)
        axes.set_title(elide(f"{label}: {len(periods)} loops", LABEL_CHARACTERS), loc="left", fontsize=9)
        axes.set_ylim(0, most * 1.25)
        axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        last = index == len(groups) - 1
        axes.set_xticks(range(len(names)), names if last else [], rotation=55, ha="right", fontsize=7.5)
    return Chart(
        name="periods",
        title="Periods of the loops, in tokens",
        svg=render_svg(made, "periods"),
        alt="Loops counted by period in doubling bins up to the largest period searched, "
        f"{max_period_tokens:,} tokens. "
        + " ".join(_period_sentence(label, periods) for label, periods in groups),
        columns=("period", *(label for label, _ in groups)),
        rows=tuple((names[i], *(str(row[i]) for row in counts)) for i in range(len(names))),
        note=f"Largest period searched: {max_period_tokens:,} tokens. A longer one is an unresolved contact, "
        "not an absence of loops.",
    )


def _period_sentence(label: str, periods: tuple[int, ...]) -> str:
    if not periods:
        return f"{label}: no loop."
    return f"{label}: {len(periods)} loops, periods {min(periods):,} to {max(periods):,}."
