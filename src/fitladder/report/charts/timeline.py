"""Loop timeline: one row a sample, with the onset of its loop and the tokens burned after it."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fitladder.report.charts.canvas import (
    FIT,
    GRID,
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
from fitladder.report.view import Sample
from fitladder.report.words import count, percent

__all__ = ["timeline_chart"]

KEY_WORDS = {
    "periodic loop": "looping from onset",
    "complete": "closed by itself",
    "unresolved contact": "unresolved",
    "ended inside thinking": "ended inside",
    "too short to tell": "too short to tell",
}
MARKS = {
    "complete": ("o", FIT),
    "unresolved contact": ("x", UNRESOLVED),
    "ended inside thinking": ("s", UNRESOLVED),
    "too short to tell": ("s", MUTED),
    "periodic loop": ("|", LOOP),
}
MAX_TIMELINE_ROWS = 160


@in_style
def timeline_chart(label: str, samples: Sequence[Sample], budget_tokens: int | None, *, name: str) -> Chart:
    """One row a sample: thinking up to the onset of its loop, the looped rest, and the budget edge.

    At most MAX_TIMELINE_ROWS rows are drawn (the table has as many); the note says how many were left out.

    Args:
        label: names the phase in title and words.
        samples: one a row, in this order.
        budget_tokens: where the budget edge is drawn; None for none.
        name: id of the chart, unique within its page.
    """
    shown = samples[:MAX_TIMELINE_ROWS]
    row_in = 0.17 if len(shown) <= 48 else 0.09
    height = row_in * len(shown) + 1.0
    made = figure(height)
    axes = axes_grid(made, (0.45, 0.5, 4.0, row_in * len(shown) + 0.05))
    plain_axes(axes)
    edge = max([1, budget_tokens or 0, *(sample.thinking_tokens for sample in shown)])
    for y, sample in enumerate(shown):
        _sample_row(axes, y, sample, edge)
    if budget_tokens is not None:
        axes.plot([budget_tokens] * 2, [-0.8, len(shown) - 0.2], color=LIMIT, linewidth=2.2)
    axes.set_xlim(0, edge * 1.02)
    axes.set_ylim(len(shown) - 0.2, -0.8)
    step = max(1, -(-len(shown) // 12))
    axes.set_yticks(range(0, len(shown), step), [str(n + 1) for n in range(0, len(shown), step)])
    axes.set_ylabel("sample")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("thinking token")
    kinds: set[str] = {sample.kind for sample in shown}
    _timeline_key(made, height, kinds, has_edge=budget_tokens is not None)
    burned = sum(sample.burned_tokens or 0 for sample in samples)
    total = sum(sample.thinking_tokens for sample in samples)
    loops = sum(sample.kind == "periodic loop" for sample in samples)
    left_out = len(samples) - len(shown)
    return Chart(
        name=name,
        title=f"Loop timeline, {label}: {percent(burned / (total or 1))} of the tokens burned in loops",
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


def _sample_row(axes: Axes, y: int, sample: Sample, edge: int) -> None:
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
        return
    ended = sample.kind == "complete"
    axes.barh(
        y,
        end,
        height=0.62,
        facecolor=FIT if ended else GRID,
        edgecolor=FIT if ended else MUTED,
        linewidth=0.5,
    )
    marker, colour = MARKS[sample.kind]
    inside = max(0.0, min(end, edge * 0.985))  # beside the budget edge, not under it
    axes.plot([inside], [y], marker=marker, color=colour, markersize=4.5, markeredgewidth=1.4)


def _timeline_key(made: Figure, height: float, kinds: set[str], *, has_edge: bool) -> None:
    """A key of exactly the marks that are drawn, three to a line."""
    axes = axes_grid(made, (0.1, height - 0.42, 4.4, 0.4))
    axes.set_axis_off()
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 2)
    entries = ["thinking"] + [KEY_WORDS[kind] for kind in KEY_WORDS if kind in kinds]
    for place, words in enumerate([*entries, *(["budget edge"] if has_edge else [])]):
        x, y = 34 * (place % 3), 1.5 - place // 3
        if words == "thinking":
            axes.barh(y, 4, left=x, height=0.6, facecolor=GRID, edgecolor=MUTED, linewidth=0.5)
        elif words == "budget edge":
            axes.plot([x + 2] * 2, [y - 0.4, y + 0.4], color=LIMIT, linewidth=2.2)
        elif words == KEY_WORDS["periodic loop"]:
            axes.barh(
                y, 4, left=x, height=0.6, facecolor=PAPER, edgecolor=LOOP, hatch="//////", linewidth=0.8
            )
        else:
            marker, colour = MARKS[next(kind for kind, name in KEY_WORDS.items() if name == words)]
            axes.plot([x + 2], [y], marker=marker, color=colour, markersize=4.5, markeredgewidth=1.4)
        axes.text(x + 6, y, words, va="center", fontsize=8.5)


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
