"""The options that several commands share, and the two ways they all print."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

__all__ = ["DataDir", "Json", "Params", "print_json", "print_table"]

Params = Annotated[Path, typer.Option("--params", help="The registry of experiments.")]
DataDir = Annotated[Path, typer.Option("--data", help="The folder of inputs, bundles and audits.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document for programs.")]


def print_json(value: Any) -> None:
    """One JSON document on standard output, keys in written order."""
    json.dump(value, sys.stdout, ensure_ascii=False, allow_nan=False, indent=1)
    sys.stdout.write("\n")


def print_table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """A table for people; as wide as it needs where the output is no terminal."""
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*row)
    console.print(table)
