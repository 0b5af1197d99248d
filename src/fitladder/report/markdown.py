"""Document to Markdown, for a terminal or a diff: no picture, every figure in its table."""

import re

from fitladder.report.document import (
    Block,
    Bullets,
    Callout,
    Commands,
    Document,
    Facts,
    FigureBlock,
    Heading,
    Para,
    Table,
)
from fitladder.report.words import visible

__all__ = ["render_markdown"]

# What Markdown acts on anywhere, what begins a block at the head of a line, and a bare link.
_SPECIAL = re.compile(
    r"([\\`*_{}\[\]<>#|~$&]|^[-+=](?=[\s=-]|$)|(?<=^\d)[.)]|(?<=^\d\d)[.)]|:(?=//)|(?<=\bwww)\.)"
)


def _text(value: str) -> str:
    """One line of inert Markdown."""
    return _SPECIAL.sub(r"\\\1", " ".join(visible(value).split()))


def _code(value: str) -> str:
    """A code span that its own content cannot close."""
    line = " ".join(visible(value).split())
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _table(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> list[str]:
    lines = ["| " + " | ".join(map(_text, columns)) + " |", "|" + " --- |" * len(columns)]
    return lines + ["| " + " | ".join(map(_text, row)) + " |" for row in rows]


def _figures(block: FigureBlock) -> list[str]:
    lines: list[str] = []
    for chart in block.charts:
        lines += [f"**{_text(chart.title)}.** {_text(chart.alt)}", "", *_table(chart.columns, chart.rows), ""]
        lines += [_text(chart.note), ""] if chart.note else []
    return lines[:-1]


def _block(block: Block) -> list[str]:
    """The lines of one block."""
    match block:
        case Para():
            lines = [_text(block.text)]
        case Heading():
            lines = [f"### {_text(block.text)}"]
        case Bullets():
            lines = [f"- {_text(item)}" for item in block.items]
        case Callout():
            lines = [f"> **{_text(block.text)}**"]
        case Facts():
            lines = _table(("", ""), block.rows)
        case Table():
            lines = [_text(block.caption), "", *_table(block.columns, block.rows)]
        case Commands():
            lines = [f"- {_code(command)}: {_text(shows)}" for command, shows in block.rows]
        case FigureBlock():
            lines = _figures(block)
    return lines


def _strip(rows: tuple[tuple[str, str], ...]) -> list[str]:
    return [*_table(("", ""), rows), ""] if rows else []


def render_markdown(document: Document) -> str:
    """The whole document, the same bytes for the same document."""
    lines = [
        f"# {_text(document.title)}",
        "",
        _code(document.subtitle),
        "",
        f"**{_text(document.verdict)}** {_text(document.lead)}",
        "",
        *_strip(document.strip),
    ]
    for warning in document.warnings:
        lines += [f"> **{_text(warning)}**", ""]
    for section in document.sections:
        lines += [f"## {_text(section.title)}", ""]
        for block in section.blocks:
            lines += [*_block(block), ""]
    return "\n".join(lines).rstrip("\n") + "\n"
