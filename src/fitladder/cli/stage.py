"""`fitladder stage NAME EXPERIMENT`: what DVC runs. One stage is imported, so that no other can break it."""

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from fitladder.cli.options import DataDir, Json, Params, print_json
from fitladder.dvc_api.record_files import check_records
from fitladder.dvc_files.experiment_lists import check_registered
from fitladder.errors import UsageError
from fitladder.registry.load import load_registry
from fitladder.sandbox.content_blind import BLIND, seal_process

__all__ = ["STAGES", "stage"]

STAGES = {  # in the order of the graph; each is called with the registry, the experiment and the data folder
    "prompts": "fitladder.stages.prompts:make_prompts",
    "bundles": "fitladder.stages.bundles:check_bundles",
    "history": "fitladder.stages.history:make_history",
    "audit": "fitladder.stages.audit:make_audit",
    "selection": "fitladder.stages.selection:make_selection",
    "semantics": "fitladder.stages.semantics:make_semantics",
    "report": "fitladder.stages.report:make_report",
}
ALWAYS_RUN = "bundles"  # in every plain `dvc repro`, before DVC itself misses what report@X depends on


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
    if name == ALWAYS_RUN:
        check_records(data.absolute(), experiment)
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
