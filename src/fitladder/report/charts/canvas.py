"""matplotlib figures as SVG that a page can own: the same bytes, in the page's own colours.

Text stays text, no clock and no identity of a tool is written, ids are unique within a page, and every colour
is a CSS variable of the page with a light default, so that one picture serves light, dark and paper.
"""

import functools
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

__all__ = [
    "ANSWER",
    "FIT",
    "GRID",
    "INK",
    "LIMIT",
    "LOOP",
    "MUTED",
    "OVER",
    "PAPER",
    "UNRESOLVED",
    "Chart",
    "axes_grid",
    "figure",
    "in_style",
    "plain_axes",
    "render_svg",
]

# Light theme; the dark one is in templates/page.css. Each stands for one variable, so they differ pairwise.
INK, MUTED, GRID, PAPER = "#1b1f24", "#57606b", "#d4d9e0", "#fffffe"
LOOP, UNRESOLVED, ANSWER = "#b3361b", "#6b4fbb", "#0b6e7f"
FIT, OVER, LIMIT = "#2f6f3e", "#a3195b", "#111316"
VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--chart-grid",
    PAPER: "--paper",
    LOOP: "--loop",
    UNRESOLVED: "--unresolved",
    ANSWER: "--answer",
    FIT: "--fit",
    OVER: "--over",
    LIMIT: "--limit",
}
WIDTH_IN = 4.6  # 331 CSS pixels at 72 points an inch: about a phone's column, so text keeps its size there
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.image_inline": True,
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10.0,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "hatch.linewidth": 1.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@dataclass(frozen=True)
class Chart:
    """A picture, the words that say what it shows, and the table of exactly the figures in it."""

    name: str
    title: str
    svg: str
    alt: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


_Arguments = ParamSpec("_Arguments")


def in_style(draw: Callable[_Arguments, Chart]) -> Callable[_Arguments, Chart]:
    """Draw under this style and under no other that the process may have set."""

    @functools.wraps(draw)
    def styled(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Chart:
        with mpl.rc_context(STYLE):
            return draw(*args, **kwargs)

    return styled


def figure(height_in: float, width_in: float = WIDTH_IN) -> Figure:
    """An empty figure of `width_in` by `height_in` inches that no global state knows of."""
    made = Figure(figsize=(width_in, height_in))
    FigureCanvasSVG(made)
    return made


def axes_grid(made: Figure, box: tuple[float, float, float, float]) -> Axes:
    """Axes of the figure `made` at `box` = (left, bottom, width, height), in inches from its lower left."""
    width, height = made.get_size_inches()
    left, bottom, wide, high = box
    return made.add_axes((left / width, bottom / height, wide / width, high / height))


def plain_axes(axes: Axes, *, grid: Literal["x", "y", "both"] = "x", hide: Sequence[str] = ("left",)) -> None:
    """Give `axes` a light `grid` below the marks, no tick stubs, and no spine that `hide` names."""
    axes.set_axisbelow(True)
    axes.grid(visible=True, axis=grid)
    axes.tick_params(length=0)
    for side in hide:
        axes.spines[side].set_visible(False)


def render_svg(made: Figure, name: str) -> str:
    """The figure `made` as one `<svg>` element; `name` prefixes every id and seeds generated ones."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        made.savefig(
            buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'<style type="text/css">.*?</style>\s*', "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="(?:matplotlib\.)?', f'id="{name}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\1{name}-", text)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg\b[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg\b[^>]*?) height="[^"]*"', r"\1", text, count=1)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var({variable}, {colour})")
    return re.sub(r"[ \t]+\n", "\n", text).strip()
