"""Charts of termination: three shares against their ceilings, and the periods of the loops."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fitladder.report.charts.canvas import (
    ANSWER,
    INK,
    LIMIT,
    LOOP,
    PAPER,
    UNRESOLVED,
    Chart,
    axes_grid,
    figure,
    in_style,
    plain_axes,
    render_svg,
)
from fitladder.report.view import Share
from fitladder.report.words import elide, percent

__all__ = ["RungShares", "period_chart", "termination_chart"]

STYLE_OF_SHARE = {
    "loops": (LOOP, "////"),
    "unresolved": (UNRESOLVED, "xxxx"),
    "answer limit": (ANSWER, "\\\\\\\\"),
}
SHARE_WORDS = {"loops": "periodic loops", "unresolved": "unresolved contacts", "answer limit": "answer limit"}
LABEL_CHARACTERS = 50
LABEL_WIDTH = 0.28  # of the whole share axis: what `10/12 over` takes, and the space beside it


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
    axes = axes_grid(made, (1.5, 0.5, 2.95, height - 0.6))
    plain_axes(axes)
    y, ticks, labels = 0.0, [], []
    for rung in rungs:
        axes.text(
            -0.5, y + 0.1, elide(rung.label, LABEL_CHARACTERS), fontsize=10, fontweight="bold", va="center"
        )
        y -= head_in / row_in
        for share in rung.shares:
            _share_bar(axes, y, share)
            ticks.append(y)
            labels.append(SHARE_WORDS[share.name])
            y -= 1
    ends = [share.high + LABEL_WIDTH for rung in rungs for share in rung.shares if not _is_label_left(share)]
    axes.set_xlim(0, max([1.04, *ends]))
    axes.set_ylim(y + 0.4, 0.45)
    axes.set_yticks(ticks, labels)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:.0f} %"))
    axes.set_xlabel("of samples; heavy mark: ceiling")
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
    left = _is_label_left(share)
    axes.text(
        (share.low if left else max(share.high, share.ceiling)) + (-0.02 if left else 0.02),
        y,
        f"{share.count}/{share.total}" + (" ok" if share.within else " over"),
        ha="right" if left else "left",
        va="center",
        fontsize=9.5,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.2},
    )


def _is_label_left(share: Share) -> bool:
    return share.high > 1 - LABEL_WIDTH and share.low > LABEL_WIDTH


def _share_sentence(share: Share) -> str:
    return (
        f"{SHARE_WORDS[share.name]} {share.count} of {share.total}, "
        f"{percent(share.count / (share.total or 1))} "
        f"(95 % interval {percent(share.low)} to {percent(share.high)}), ceiling {share.ceiling_text}, "
        f"{'within' if share.within else 'exceeded'}"
    )


@in_style
def period_chart(groups: Sequence[tuple[str, tuple[int, ...]]], max_period_tokens: int) -> Chart:
    """Loops by their period, in bins that double, one panel a phase.

    Args:
        groups: (label, periods in tokens) of each phase.
        max_period_tokens: the largest period that was searched.
    """
    edges = [1]
    while edges[-1] <= max_period_tokens:
        edges.append(edges[-1] * 2)
    names = [_bin(low, min(high - 1, max_period_tokens)) for low, high in pairwise(edges)]
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
        axes = axes_grid(made, (0.4, bottom, 4.05, panel_in - 0.4))
        plain_axes(axes, grid="y")
        axes.bar(
            range(len(row)), row, width=0.72, facecolor=PAPER, edgecolor=LOOP, hatch="////", linewidth=1.2
        )
        for x, number in enumerate(row):
            if number:
                axes.text(x, number, str(number), ha="center", va="bottom", fontsize=9)
        axes.set_title(elide(f"{label}: {len(periods)} loops", LABEL_CHARACTERS), loc="left", fontsize=10)
        axes.set_ylim(0, most * 1.25)
        axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        last = index == len(groups) - 1
        axes.set_xticks(range(len(names)), names if last else [], rotation=55, ha="right", fontsize=8.5)
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


def _bin(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _period_sentence(label: str, periods: tuple[int, ...]) -> str:
    if not periods:
        return f"{label}: no loop."
    return f"{label}: {len(periods)} loops, periods {min(periods):,} to {max(periods):,}."
