"""Contrast of the page's colours, in light, dark and print: 4.5 for words, 3 for marks of a chart."""

import re
from importlib.resources import files

import pytest

from fitladder.report.charts.canvas import VARIABLES

CSS = (files("fitladder.report") / "templates" / "page.css").read_text(encoding="utf-8")
WORDS = [
    ("--ink", ("--paper", "--page")),
    ("--muted", ("--paper", "--page")),
    ("--link", ("--paper", "--page")),
]
WORDS += [(f"--{tone}-ink", (f"--{tone}-bg",)) for tone in ("good", "bad", "open", "note")]
MARKS = ["--loop", "--unresolved", "--answer", "--fit", "--over", "--limit", "--muted"]


def themes() -> dict[str, dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", CSS, flags=re.DOTALL)
    found = [dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", block)) for block in blocks]
    return dict(zip(("light", "dark", "print"), found, strict=True))


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", ["light", "dark", "print"])
def test_words_and_marks_are_readable(name: str) -> None:
    theme = themes()[name]
    for ink, grounds in WORDS:
        for ground in grounds:
            assert contrast(theme[ink], theme[ground]) >= 4.5, (ink, ground)
    for mark in MARKS:
        assert contrast(theme[mark], theme["--paper"]) >= 3, mark


def test_every_colour_of_a_chart_is_in_every_theme() -> None:
    found = themes()
    for colour, variable in VARIABLES.items():
        assert found["light"][variable] == colour, variable  # what a picture falls back to outside a page
        assert variable in found["dark"]
        assert variable in found["print"]
