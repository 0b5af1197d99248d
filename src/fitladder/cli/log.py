"""`fitladder log X "text"`: one more line in the experiment's append-only log, or all of them."""

import getpass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from fitladder.cli.options import DataDir, Json, Params, print_json, print_table
from fitladder.registry.load import load_registry
from fitladder.report.running_log import append_log, load_log
from fitladder.report.view import LogLine
from fitladder.report.words import short_sha
from fitladder.utc import format_utc

__all__ = ["log"]


def log(
    experiment: Annotated[str, typer.Argument(help="An experiment id.")],
    text: Annotated[str | None, typer.Argument(help="What happened; without it the log is shown.")] = None,
    *,
    by: Annotated[str | None, typer.Option("--by", help="Who says so; your login name by default.")] = None,
    params: Params = Path("params.yaml"),
    data: DataDir = Path("data"),
    as_json: Json = False,
) -> None:
    """Append a line to the running log; no line is ever changed. It decides nothing; the report shows it."""
    load_registry(params).experiment(experiment)
    if text is not None:
        lines: tuple[LogLine, ...] = (
            append_log(
                data, experiment, text, author=by or getpass.getuser(), recorded=format_utc(datetime.now(UTC))
            ),
        )
    else:
        lines = load_log(data, experiment)
    if as_json:
        print_json({"experiment_id": experiment, "lines": [_plain(line) for line in lines]})
        return
    rows: list[tuple[str, ...]] = [
        (
            str(line.sequence),
            line.recorded,
            line.author,
            line.text,
            short_sha(line.sha256),
        )
        for line in lines
    ]
    print_table(f"log of {experiment}", ("no.", "recorded", "author", "text", "SHA-256"), rows)


def _plain(line: LogLine) -> dict[str, object]:
    return {
        "sequence": line.sequence,
        "recorded": line.recorded,
        "author": line.author,
        "text": line.text,
        "sha256": line.sha256,
    }
