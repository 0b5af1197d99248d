"""The options that several commands share, and the two ways they all print."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fitladder.report.words import visible

__all__ = ["DEFAULT_ENGINE_PYTHON", "DataDir", "EnginePython", "Json", "Params", "print_json", "print_table"]

Params = Annotated[Path, typer.Option("--params", help="The registry of experiments.")]
DataDir = Annotated[Path, typer.Option("--data", help="The folder of inputs, bundles and audits.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document for programs; none on a refusal.")]
EnginePython = Annotated[
    Path,
    typer.Option(
        "--engine-python", envvar="FITLADDER_ENGINE_PYTHON", help="Python of the engine environment."
    ),
]
DEFAULT_ENGINE_PYTHON = Path(".venv-vllm/bin/python")
_SURROGATE = re.compile("[\ud800-\udfff]")


def print_json(value: Any) -> None:
    """One JSON document on standard output, keys in written order."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)
    # a lone surrogate has no UTF-8 form; as an escape it reads back equal
    sys.stdout.write(_SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text) + "\n")


def print_table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """A table for people, every cell plain text; as wide as it needs where the output is no terminal."""
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    table = Table(title=escape(visible(title)), title_justify="left")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(escape(visible(cell)) for cell in row))
    console.print(table)
