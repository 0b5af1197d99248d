"""Charts of capacity: KV demand against the live pool, and active width against captured graphs."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import FuncFormatter, MaxNLocator

from fitladder.report.charts.canvas import (
    FIT,
    GRID,
    INK,
    LIMIT,
    MUTED,
    OVER,
    PAPER,
    Chart,
    axes_grid,
    figure,
    in_style,
    plain_axes,
    render_svg,
)
from fitladder.report.words import NOT_RECORDED, count, elide, sizes

__all__ = ["CoverageBar", "DemandBar", "coverage_chart", "demand_chart"]

ROW_IN = 0.62
LABEL_CHARACTERS = 50


@dataclass(frozen=True)
class DemandBar:
    """What so many sequences need at their longest, and what the live pool held."""

    label: str
    required_tokens: int
    kv_cache_size_tokens: int
    generated: bool = True  # False: refused or stopped before a token was sampled

    @property
    def fits(self) -> bool:
        """By the token rule."""
        return self.required_tokens <= self.kv_cache_size_tokens


@dataclass(frozen=True)
class CoverageBar:
    """The widest batch of a phase and the sizes that the engine captured a graph for."""

    label: str
    active_width: int
    resolved: tuple[int, ...] | None
    uncovered: str


@in_style
def demand_chart(bars: Sequence[DemandBar]) -> Chart:
    """Horizontal bars of required tokens; a heavy upright mark on each is the live capacity."""
    height = ROW_IN * len(bars) + 0.75
    made = figure(height)
    axes = axes_grid(made, (0.15, 0.5, 4.25, ROW_IN * len(bars) + 0.1))
    plain_axes(axes)
    for row, bar in enumerate(bars):
        y = len(bars) - 1 - row
        axes.barh(
            y - 0.12,
            bar.required_tokens,
            height=0.42,
            facecolor=FIT if bar.fits else PAPER,
            edgecolor=FIT if bar.fits else OVER,
            hatch=None if bar.fits else "////",
            linewidth=1.2,
        )
        axes.plot([bar.kv_cache_size_tokens] * 2, [y - 0.42, y + 0.16], color=LIMIT, linewidth=2.6)
        axes.text(0, y + 0.2, _demand_words(bar), va="bottom", ha="left", fontsize=9.5)
    top = max(max(bar.required_tokens, bar.kv_cache_size_tokens) for bar in bars)
    axes.set_xlim(0, top * 1.04)
    axes.set_ylim(-0.5, len(bars) - 0.35)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _thousands(value)))
    axes.set_xlabel("KV tokens; the upright mark is the live capacity")
    return Chart(
        name="demand",
        title="Demand against live capacity",
        svg=render_svg(made, "demand"),
        alt="KV-cache tokens that all active sequences need at their longest, each bar with a mark at "
        "the live capacity. " + " ".join(_demand_sentence(bar) for bar in bars),
        columns=("phase", "required tokens", "live capacity tokens", "margin tokens", "verdict"),
        rows=tuple(
            (
                bar.label,
                count(bar.required_tokens),
                count(bar.kv_cache_size_tokens),
                count(bar.kv_cache_size_tokens - bar.required_tokens),
                _verdict(bar),
            )
            for bar in bars
        ),
    )


def _thousands(value: float) -> str:
    return f"{value / 1e6:g} M" if value >= 1e6 else f"{value / 1e3:g} k" if value >= 1e3 else f"{value:g}"


def _verdict(bar: DemandBar) -> str:
    words = "fits" if bar.fits else "does not fit"
    return words if bar.generated else f"{words}; nothing was sampled"


def _demand_words(bar: DemandBar) -> str:
    margin = bar.kv_cache_size_tokens - bar.required_tokens
    sign = f"{margin:,} spare" if margin >= 0 else f"{-margin:,} missing"
    return elide(f"{bar.label}: {sign}", LABEL_CHARACTERS)


def _demand_sentence(bar: DemandBar) -> str:
    return f"{bar.label}: {bar.required_tokens:,} needed of {bar.kv_cache_size_tokens:,}, {_verdict(bar)}."


@in_style
def coverage_chart(bars: Sequence[CoverageBar]) -> Chart:
    """A line from 1 to the widest batch, captured sizes as dots, the stretch without a graph hatched."""
    height = ROW_IN * len(bars) + 0.75
    made = figure(height)
    axes = axes_grid(made, (0.15, 0.5, 4.25, ROW_IN * len(bars) + 0.1))
    plain_axes(axes)
    for row, bar in enumerate(bars):
        y = len(bars) - 1 - row
        largest = max(bar.resolved or (0,))
        covered = min(largest, bar.active_width)
        axes.barh(y - 0.12, covered, height=0.34, facecolor=GRID, edgecolor=MUTED, linewidth=0.8)
        if bar.resolved == ():
            axes.barh(
                y - 0.12, bar.active_width, height=0.34, facecolor=PAPER, edgecolor=MUTED, linewidth=0.8
            )
        elif bar.resolved is not None and covered < bar.active_width:
            axes.barh(
                y - 0.12,
                bar.active_width - covered,
                left=covered,
                height=0.34,
                facecolor=PAPER,
                edgecolor=OVER,
                hatch="////",
                linewidth=1.0,
            )
        marks = [size for size in bar.resolved or () if size <= bar.active_width]
        axes.plot(marks, [y - 0.12] * len(marks), "o", color=INK, markersize=5)
        axes.plot([bar.active_width] * 2, [y - 0.42, y + 0.16], color=LIMIT, linewidth=2.6)
        axes.text(0, y + 0.2, _coverage_words(bar), va="bottom", ha="left", fontsize=9.5)
    axes.set_xlim(0, max(bar.active_width for bar in bars) * 1.04)
    axes.set_ylim(-0.5, len(bars) - 0.35)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("sequences at once; dots: captured sizes")
    return Chart(
        name="coverage",
        title="Active width against the largest resolved graph",
        svg=render_svg(made, "coverage"),
        alt="For each phase the decode widths that a captured CUDA graph covers, up to the widest batch. "
        + " ".join(f"{_coverage_words(bar)}." for bar in bars),
        columns=("phase", "widest batch", "resolved sizes", "widths without a graph"),
        rows=tuple((bar.label, str(bar.active_width), sizes(bar.resolved), bar.uncovered) for bar in bars),
    )


def _coverage_words(bar: CoverageBar) -> str:
    if bar.resolved is None:
        return elide(f"{bar.label}: resolved sizes {NOT_RECORDED}", LABEL_CHARACTERS)
    if not bar.resolved:
        return elide(f"{bar.label}: eager, no graph by registration", LABEL_CHARACTERS)
    missing = "every width covered" if bar.uncovered == "none" else f"{bar.uncovered} without a graph"
    return elide(f"{bar.label}: {missing}", LABEL_CHARACTERS)
