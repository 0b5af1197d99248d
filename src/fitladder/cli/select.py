"""`fitladder select X`: decides the ladder from every audit, recomputed."""

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from fitladder.canonical import parse_json
from fitladder.cli.options import DataDir, Json, Params, print_json, print_table
from fitladder.errors import LineageError
from fitladder.registry.data_paths import selection_path
from fitladder.registry.load import load_registry
from fitladder.sandbox.content_blind import seal_process

__all__ = ["select"]


def select(
    experiment: Annotated[str, typer.Argument(help="An experiment id.")],
    params: Params = Path("params.yaml"),
    data: DataDir = Path("data"),
    as_json: Json = False,
) -> None:
    """Decide the ladder from every audit recomputed; a decision that stands is never replaced."""
    registry = load_registry(params)
    path = selection_path(data.absolute(), registry.experiment(experiment).experiment_id)
    seal = seal_process(data.absolute(), experiment, writes="selection")
    make_selection: Any = importlib.import_module("fitladder.stages.selection").make_selection
    line = make_selection(registry, experiment, data.absolute())
    decision = parse_json(path.read_bytes(), where=str(path), error=LineageError)
    if as_json:
        print_json(decision)
        return
    if decision["pass"] is None:  # its reason knows of an experiment that is stopped or terminal
        line = f"{experiment}: no selection yet: {decision['reason']}"
    rows = [
        (
            str(rung["thinking_budget_tokens"]),
            rung["status"],
            ", ".join(_phase(one) for one in rung["phases"]),
        )
        for rung in decision.get("rungs", [])
    ]
    if rows:
        print_table(f"ladder of {experiment}", ("budget", "status", "phases"), rows)
    typer.echo(line)
    typer.echo(f"content-blind by {seal}")


def _phase(outcome: dict[str, object]) -> str:
    key = outcome["key"]
    name = key["phase"] if isinstance(key, dict) else "?"
    return f"{name} {'adequate' if outcome['adequate'] else 'rejected'}"
