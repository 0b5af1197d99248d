"""`fitladder stage NAME EXPERIMENT`: what DVC runs. One stage is imported, so that no other can break it."""

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from fitladder.commands.options import DataDir, Json, Params, print_json
from fitladder.errors import UsageError
from fitladder.lineage.blind import BLIND, seal_process
from fitladder.lineage.register import check_registered
from fitladder.protocol.registry import load_registry

__all__ = ["STAGES", "stage"]

STAGES = {  # in the order of the graph; each is called with the registry, the experiment and the data folder
    "prompts": "fitladder.lineage.stages.prompts:make_prompts",
    "bundles": "fitladder.lineage.stages.bundles:check_bundles",
    "history": "fitladder.lineage.stages.history:make_history",
    "audit": "fitladder.lineage.stages.audit:make_audit",
    "selection": "fitladder.lineage.stages.selection:make_selection",
    "semantics": "fitladder.lineage.stages.semantics:make_semantics",
    "report": "fitladder.lineage.stages.report:make_report",
}


def stage(
    name: Annotated[str, typer.Argument(help="One of " + ", ".join(STAGES) + ".")],
    experiment: Annotated[str, typer.Argument(help="An experiment id.")],
    params: Params = Path("params.yaml"),
    data: DataDir = Path("data"),
    as_json: Json = False,
) -> None:
    """Run one stage of dvc.yaml for one experiment. `dvc repro` calls this; so may you."""
    if name not in STAGES:
        raise UsageError("no such stage", got=repr(name), need="one of " + ", ".join(STAGES))
    registry = load_registry(params)
    registry.experiment(experiment)
    check_registered(registry, params.with_name("dvc.yaml"))
    seal = seal_process(data.absolute(), experiment, writes=name) if name in BLIND else None
    module, _, attribute = STAGES[name].partition(":")
    run: Any = getattr(importlib.import_module(module), attribute)
    line = run(registry, experiment, data.absolute())
    if as_json:
        print_json({"stage": name, "experiment_id": experiment, "done": line, "seal": seal})
        return
    typer.echo(line)
    if seal:
        typer.echo(f"content-blind by {seal}")
