"""Charts of speed: throughput against width, a study's factorial, a descriptive comparison."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import FuncFormatter, MaxNLocator

from fitladder.report.charts.canvas import (
    FIT,
    INK,
    OVER,
    PAPER,
    Chart,
    axes_grid,
    figure,
    in_style,
    plain_axes,
    render_svg,
)
from fitladder.report.view import Comparison
from fitladder.report.words import NOT_RECORDED, count, elide, fixed

__all__ = ["StudyCell", "ThroughputPoint", "comparison_chart", "factorial_chart", "throughput_chart"]

LABEL_CHARACTERS = 50
ROW_IN = 0.58


@dataclass(frozen=True)
class ThroughputPoint:
    """One run: its width, its speed, and how often a sequence lost its cache."""

    label: str
    width: int
    tokens_per_s: float
    preemptions: int | None
    fits: bool


@dataclass(frozen=True)
class StudyCell:
    """One cell of a factorial over its repeats; `low` and `high` are its interval. Failed cells are kept."""

    label: str
    width: int
    capture: str
    pool_blocks: int
    tokens_per_s: float | None
    low: float | None
    high: float | None
    preemptions: int | None
    recomputed_tokens: int | None
    repeats: int
    failed: int = 0


def _speed(value: float, _: int) -> str:
    return f"{value:,.0f}"


@in_style
def throughput_chart(points: Sequence[ThroughputPoint]) -> Chart:
    """Tokens a second over width; a hollow diamond did not fit. The note names each numbered mark."""
    made = figure(2.9)
    axes = axes_grid(made, (0.78, 0.5, 3.7, 2.25))
    plain_axes(axes, grid="both", hide=())
    widest, fastest = max(p.width for p in points), max(p.tokens_per_s for p in points)
    for number, (point, place) in enumerate(zip(points, _label_places(points), strict=True), start=1):
        axes.plot(
            [point.width],
            [point.tokens_per_s],
            marker="o" if point.fits else "D",
            color=FIT if point.fits else OVER,
            markerfacecolor=FIT if point.fits else PAPER,
            markersize=8,
            markeredgewidth=1.8,
        )
        axes.text(
            point.width + (-0.035 if place.left else 0.035) * widest,
            place.height,
            str(number),
            ha="right" if place.left else "left",
            va="center",
            fontsize=10,
        )
    axes.set_xlim(0, widest * 1.12)
    axes.set_ylim(0, fastest * 1.25)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(_speed))
    axes.set_xlabel("max_num_seqs; hollow: overcommitted")
    axes.set_ylabel("sampled tokens a second")
    return Chart(
        name="throughput",
        title="Throughput against width, with preemptions",
        svg=render_svg(made, "throughput"),
        alt="Sampled tokens a second against max_num_seqs. "
        + " ".join(
            f"{number}: {p.label}, {p.tokens_per_s:,.3f} tokens a second at {p.width} wide, {_preempted(p)}, "
            f"{'fits' if p.fits else 'does not fit'}."
            for number, p in enumerate(points, start=1)
        ),
        columns=("no.", "run", "max_num_seqs", "tokens a second", "preemptions", "fits"),
        rows=tuple(
            (
                str(n),
                p.label,
                str(p.width),
                fixed(p.tokens_per_s),
                count(p.preemptions),
                "yes" if p.fits else "no",
            )
            for n, p in enumerate(points, start=1)
        ),
        note=" ".join(f"{n}: {p.label}, {_preempted(p)}." for n, p in enumerate(points, start=1)),
    )


@dataclass(frozen=True)
class _Place:
    left: bool
    height: float


def _label_places(points: Sequence[ThroughputPoint]) -> list[_Place]:
    """The place of each number: next to its mark, clear of a mark next to it and of the number below it."""
    widest, gap = max(p.width for p in points), 0.075 * max(p.tokens_per_s for p in points)
    reach = 0.06 * widest
    places: dict[int, _Place] = {}
    for index in sorted(range(len(points)), key=lambda i: (points[i].tokens_per_s, i)):
        point = points[index]
        crowded = any(
            0 < other.width - point.width <= reach and abs(other.tokens_per_s - point.tokens_per_s) < gap
            for other in points
        )
        left, height = crowded or point.width > widest * 0.55, point.tokens_per_s
        for below, place in places.items():
            near = abs(points[below].width - point.width) <= reach and place.left == left
            if near and height < place.height + gap:
                height = place.height + gap
        places[index] = _Place(left, height)
    return [places[index] for index in range(len(points))]


def _preempted(point: ThroughputPoint) -> str:
    return f"preemptions {NOT_RECORDED}" if point.preemptions is None else f"{point.preemptions:,} preempted"


def _speed_bars(
    name: str, rows: Sequence[tuple[str, float | None, float | None, float | None, bool]], hatched: str
) -> str:
    """Labelled bars (label, value, low, high, plain) of tokens a second; `hatched` says what is not plain."""
    made = figure(ROW_IN * len(rows) + 0.7)
    axes = axes_grid(made, (0.15, 0.5, 4.3, ROW_IN * len(rows) + 0.05))
    plain_axes(axes)
    for index, (label, value, low, high, plain) in enumerate(rows):
        y = len(rows) - 1 - index
        axes.text(0, y + 0.16, elide(label, LABEL_CHARACTERS), va="bottom", ha="left", fontsize=9.5)
        if value is None:
            continue
        axes.barh(
            y - 0.12,
            value,
            height=0.4,
            facecolor=FIT if plain else PAPER,
            edgecolor=FIT if plain else OVER,
            hatch=None if plain else "////",
            linewidth=1.2,
        )
        if low is not None and high is not None:
            axes.plot([low, high], [y - 0.12] * 2, color=INK, linewidth=1.6, marker="|", markersize=8)
    axes.set_xlim(0, max([1.0, *(high or value or 0 for _, value, _, high, _ in rows)]) * 1.05)
    axes.set_ylim(-0.5, len(rows) - 0.4)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(_speed))
    key = "" if all(row[-1] for row in rows) else f"; hatched: {hatched}"
    axes.set_xlabel(f"sampled tokens a second{key}")
    return render_svg(made, name)


@in_style
def factorial_chart(cells: Sequence[StudyCell]) -> Chart:
    """One bar a cell with its interval; hatched where sequences were preempted; failed cells stay, empty."""

    def words(cell: StudyCell) -> str:
        speed = "failed" if cell.tokens_per_s is None else f"{cell.tokens_per_s:,.1f}"
        return f"{cell.label}: {speed}, {count(cell.preemptions)} preempted"

    return Chart(
        name="factorial",
        title="Study: width, capture mode and pool",
        svg=_speed_bars(
            "factorial",
            [(words(c), c.tokens_per_s, c.low, c.high, not c.preemptions) for c in cells],
            "preempted",
        ),
        alt="Sampled tokens a second of every cell of the study, with intervals over its repeats. "
        + " ".join(f"{words(cell)}." for cell in cells),
        columns=(
            "cell",
            "width",
            "capture",
            "pool blocks",
            "tokens a second",
            "interval",
            "preemptions",
            "recomputed tokens",
            "repeats",
            "failed",
        ),
        rows=tuple(
            (
                cell.label,
                str(cell.width),
                cell.capture,
                count(cell.pool_blocks),
                fixed(cell.tokens_per_s, 1),
                f"{fixed(cell.low, 1)} to {fixed(cell.high, 1)}" if cell.low is not None else NOT_RECORDED,
                count(cell.preemptions),
                count(cell.recomputed_tokens),
                str(cell.repeats),
                str(cell.failed),
            )
            for cell in cells
        ),
    )


@in_style
def comparison_chart(rows: Sequence[Comparison]) -> Chart:
    """Runs of different experiments side by side. It describes; it pools nothing and proves no cause."""
    return Chart(
        name="comparison",
        title="Sampled tokens a second, each cited by its audit",
        svg=_speed_bars(
            "comparison",
            [
                (
                    f"{_short(row)}: {row.tokens_per_s:,.3f}",
                    row.tokens_per_s,
                    None,
                    None,
                    row.required_tokens <= row.kv_cache_size_tokens,
                )
                for row in rows
            ],
            "overcommitted",
        ),
        alt="Sampled tokens a second of phases of different experiments; hatched bars demanded more KV "
        "cache than there was. "
        + " ".join(f"{row.experiment_id}, {_short(row)}: {row.tokens_per_s:,.3f}." for row in rows),
        columns=(
            "experiment",
            "budget",
            "max_num_seqs",
            "capture",
            "KV tokens demanded / live",
            "sampled tokens",
            "seconds",
            "tokens/s",
            "loops",
            "unresolved",
            "answer limit",
            "source",
        ),
        rows=tuple(
            (
                row.experiment_id,
                count(row.thinking_budget_tokens),
                str(row.max_num_seqs),
                row.capture,
                f"{count(row.required_tokens)}\u00a0/ {count(row.kv_cache_size_tokens)}",
                count(row.sampled_tokens),
                fixed(row.generation_s),
                fixed(row.tokens_per_s),
                row.loops,
                row.unresolved,
                row.answer_limit,
                row.source,
            )
            for row in rows
        ),
        note="Rows of different experiments are never pooled. Several things differ between them at once, "
        "and scheduling changes sampled trajectories: the table describes, it shows no cause.",
    )


def _short(row: Comparison) -> str:
    return f"{row.thinking_budget_tokens:,} budget, {row.label}"
