"""`fitladder validate` and `fitladder binding`: checks params.yaml, and shows what is frozen."""

import os
from pathlib import Path
from typing import Annotated

import typer

from fitladder.cli.options import Json, Params, print_json, print_table
from fitladder.errors import UsageError
from fitladder.records.binding import Binding
from fitladder.records.experiment import Experiment
from fitladder.records.history import load_history
from fitladder.records.registry import Registry
from fitladder.registry.binding import bind, moved
from fitladder.registry.feasibility import check_feasible
from fitladder.registry.load import load_registry
from fitladder.store.root import resolve_root
from fitladder.store.verify_bundle import recorded_binding

__all__ = ["binding", "check_registered", "validate"]

Name = Annotated[str | None, typer.Argument(help="An experiment id; all of them where left out.")]


def validate(experiment: Name = None, params: Params = Path("params.yaml"), as_json: Json = False) -> None:
    """Check params.yaml, or one experiment in it. Needs no model, no GPU and no input file."""
    registry = load_registry(params)
    chosen = [registry.experiment(experiment)] if experiment else list(registry.experiments.values())
    for one in chosen:
        check_registered(registry, one, params.absolute().parent / "data")
    if as_json:
        print_json({"valid": True, "experiments": [_summary(item) for item in chosen]})
        return
    rows = [
        (item.experiment_id, item.state, _rungs(item), item.engine.capture, item.kv_rule, item.review)
        for item in chosen
    ]
    print_table(f"{params}: valid", ("experiment", "state", "rungs", "capture", "KV rule", "review"), rows)


def check_registered(registry: Registry, experiment: Experiment, data_dir: Path) -> None:
    """Everything that can be known of a registration without an engine.

    Raises RegistrationError naming the field; RootRefused for an open experiment whose root, where this
    machine names one, may not be used.
    """
    recorded = {path.stem for path in (data_dir / "history").glob("*.json")}
    parent = registry.experiments.get(experiment.predecessor or "")
    history = load_history(data_dir, parent.experiment_id) if parent else None
    alike = parent is not None and (parent.model, parent.engine.max_model_len_tokens) == (
        experiment.model,
        experiment.engine.max_model_len_tokens,
    )
    block_tokens = history.phases[-1].capacity.block_size_tokens if history and alike else None
    check_feasible(registry, experiment, recorded, block_tokens)
    artifacts = experiment.artifacts
    if experiment.state == "open" and (artifacts.root or artifacts.environment_override in os.environ):
        resolve_root(experiment, os.environ, others=registry.experiments.values())


def _rungs(experiment: Experiment) -> str:
    return ", ".join(f"{rung.thinking_budget_tokens} x {rung.max_num_seqs}" for rung in experiment.rungs)


def _summary(experiment: Experiment) -> dict[str, object]:
    return {
        "experiment_id": experiment.experiment_id,
        "state": experiment.state,
        "review": experiment.review,
        "capture": experiment.engine.capture,
        "kv_rule": experiment.kv_rule,
        "rungs": [rung.model_dump(mode="json") for rung in experiment.rungs],
        "binding_sha256": bind(experiment).binding_sha256,
    }


def binding(
    experiment: Annotated[str, typer.Argument(help="An experiment id.")],
    explain: Annotated[bool, typer.Option("--explain", help="List every part that is bound.")] = False,
    diff: Annotated[
        Path | None, typer.Option("--diff", help="A bundle folder: what moved since its receipt.")
    ] = None,
    params: Params = Path("params.yaml"),
    as_json: Json = False,
) -> None:
    """Show what is frozen: one digest over the section, the data and the code that can change a result."""
    if explain and diff:
        raise UsageError("--explain and --diff", got="both", need="one of them")
    now = bind(load_registry(params).experiment(experiment))
    if diff is not None:
        _print_diff(recorded_binding(diff), now, as_json)
    elif as_json:
        print_json(now.model_dump(mode="json") if explain else {"binding_sha256": now.binding_sha256})
    elif explain:
        rows = [("protocol section", str(len(now.section)) + " fields", "params.yaml")]
        rows += [("data", sha, name) for name, sha in now.data.items()]
        rows += [("generation code", sha, path) for path, sha in now.generation_code.items()]
        rows += [("decision code", sha, path) for path, sha in now.decision_code.items()]
        print_table(f"binding {now.binding_sha256}", ("part", "SHA-256", "what"), rows)
    else:
        typer.echo(now.binding_sha256)


def _print_diff(old: Binding, now: Binding, as_json: bool) -> None:
    changes = moved(old, now)
    if as_json:
        print_json({"same": not changes, "moved": [change.model_dump(mode="json") for change in changes]})
    elif changes:
        rows = [(change.part, str(change.old), str(change.new)) for change in changes]
        print_table("moved since the receipt", ("part", "receipt", "now"), rows)
    else:
        typer.echo(f"nothing moved: {now.binding_sha256}")
