"""Blocks and sections of a page, before it is HTML or Markdown.

html.py and markdown.py print the same document, so the two cannot differ.
"""

from dataclasses import dataclass
from typing import Literal

from fitladder.report.charts.canvas import Chart

__all__ = [
    "Block",
    "Bullets",
    "Callout",
    "Commands",
    "Document",
    "Facts",
    "FigureBlock",
    "Heading",
    "Para",
    "Section",
    "Table",
]

Tone = Literal["good", "bad", "open", "note"]


@dataclass(frozen=True)
class Para:
    """A paragraph."""

    text: str
    kind: Literal["para"] = "para"


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str
    kind: Literal["heading"] = "heading"


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]
    kind: Literal["bullets"] = "bullets"


@dataclass(frozen=True)
class Callout:
    """A sentence that must not be overlooked."""

    text: str
    tone: Tone
    kind: Literal["callout"] = "callout"


@dataclass(frozen=True)
class Facts:
    """Label and value pairs."""

    rows: tuple[tuple[str, str], ...]
    kind: Literal["facts"] = "facts"


@dataclass(frozen=True)
class Table:
    """A table with a caption; `numeric` columns are set to the right."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    folded: bool = False  # behind a summary
    links: tuple[str | None, ...] = ()  # one a row, on its first cell
    row_headers: bool = False  # the first column names its row
    kind: Literal["table"] = "table"


@dataclass(frozen=True)
class FigureBlock:
    """Charts, next to each other where there is room."""

    charts: tuple[Chart, ...]
    kind: Literal["figures"] = "figures"


@dataclass(frozen=True)
class Commands:
    """What to type, each with what it shows."""

    rows: tuple[tuple[str, str], ...]
    kind: Literal["commands"] = "commands"


Block = Para | Heading | Bullets | Callout | Facts | Table | FigureBlock | Commands


@dataclass(frozen=True)
class Section:
    """A numbered part of the page. `anchor` is its id in links."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A whole page. `lead` is the status line; `strip` is the row of facts under it."""

    title: str
    subtitle: str
    verdict: str
    tone: Tone
    lead: str
    strip: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]
    home: str | None = "index.html"
    made_by: str = "fitladder report"
