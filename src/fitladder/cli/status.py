"""`fitladder status`: shows for every phase what the disk proves, and the one command that is due."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fitladder.cli.options import Json, Params, print_json, print_table
from fitladder.errors import BindingChanged, EnvironmentNotReady, FitladderError, GoRefused
from fitladder.phase.status import ExperimentStatus, PhaseStatus, experiment_status
from fitladder.prefect_api.client import PrefectApi, api_from_environment
from fitladder.prefect_api.conflicts import ComparedPhase, approval_conflicts, compare_status
from fitladder.prefect_api.runs import FlowRun
from fitladder.registry.load import load_registry
from fitladder.workspace import Workspace, workspace_here

__all__ = ["status"]


def status(
    experiment: Annotated[str | None, typer.Argument(help="An experiment id; all where left out.")] = None,
    params: Params = Path("params.yaml"),
    check: Annotated[
        bool, typer.Option("--check", help="Exit code 3 where an experiment is foreign to this checkout.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Where every experiment stands: state, GO, receipt, and what is authorised next.

    Bundles that were made under another protocol or other generation code are shown as foreign. One that
    cannot be believed is shown as broken, the others all the same, and the exit code is its refusal's.
    """
    registry = load_registry(params)
    names = [experiment] if experiment else list(registry.experiments)
    workspace = workspace_here()
    found: list[ExperimentStatus] = []
    foreign: dict[str, str] = {}
    broken: dict[str, FitladderError] = {}
    for name in names:
        try:
            found.append(experiment_status(workspace, registry, name))
        except BindingChanged as refusal:
            foreign[name] = str(refusal)
        except FitladderError as refusal:
            broken[name] = refusal
    api, unreachable = _server(workspace)
    comparisons = [compare_status(api, workspace, one) if api else () for one in found]
    found = [_barred(one, compared) for one, compared in zip(found, comparisons, strict=True)]
    against = [_approval_conflicts(api, workspace, one) if api else () for one in found]
    if as_json:
        plain = [_plain(*three) for three in zip(found, comparisons, against, strict=True)]
        plain += [
            {"experiment_id": name, "state": registry.experiment(name).state, "foreign": line}
            for name, line in foreign.items()
        ]
        plain += [
            {"experiment_id": name, "state": registry.experiment(name).state, "broken": str(refusal)}
            for name, refusal in broken.items()
        ]
        print_json({"experiments": sorted(plain, key=lambda one: names.index(one["experiment_id"]))})
    else:
        _print(found, comparisons, against, with_prefect=api is not None)
        for name, line in foreign.items():
            typer.echo(f"{name} ({registry.experiment(name).state}; foreign to this checkout)\n  {line}")
        for name in broken if len(names) > 1 else ():
            typer.echo(f"{name} ({registry.experiment(name).state}; BROKEN)\n  {broken[name]}")
    for refused in (*broken.values(), unreachable):
        if refused is not None:
            raise refused
    if check and foreign:
        raise typer.Exit(BindingChanged.exit_code)


def _server(workspace: Workspace) -> tuple[PrefectApi | None, EnvironmentNotReady | None]:
    """The server that is named and answers, or why not; what the disk proves is shown without it, too."""
    if not workspace.environment.get("PREFECT_API_URL"):
        return None, None
    api = api_from_environment(workspace.environment)
    try:
        api.check_up()
    except EnvironmentNotReady as refusal:
        return None, refusal
    return api, None


def _approval_conflicts(api: PrefectApi, workspace: Workspace, one: ExperimentStatus) -> tuple[str, ...]:
    """Conflicts of one experiment; a chain that cannot be read is one, and hides no other experiment."""
    try:
        return approval_conflicts(api, workspace, one)
    except GoRefused as refusal:
        return (str(refusal),)


def _barred(one: ExperimentStatus, compared: tuple[ComparedPhase, ...]) -> ExperimentStatus:
    """Bar an experiment of which another host has phases, until their receipts are here."""
    if one.barred or not any(each.elsewhere for each in compared):
        return one
    pull = f"fitladder lineage pull {one.experiment.experiment_id}"
    return replace(
        one, barred=f"another host has phases of it; when they are committed, `git pull`, then `{pull}`"
    )


def _print(
    found: Sequence[ExperimentStatus],
    comparisons: Sequence[tuple[ComparedPhase, ...]],
    against: Sequence[tuple[str, ...]],
    *,
    with_prefect: bool,
) -> None:
    for one, compared, wrong in zip(found, comparisons, against, strict=True):
        runs = {each.disk.key: each.run for each in compared}
        rows = [
            (*_row(phase), *(_run_state(runs[phase.key]) if with_prefect else ()))
            for phase in one.phases
            if phase.state != "not_run" or runs.get(phase.key)
        ]
        title = f"{one.experiment.experiment_id} ({one.experiment.state}; from {one.source})"
        if rows:
            columns = (
                "budget",
                "phase",
                "state",
                "GO",
                "receipt",
                *(("Prefect says",) if with_prefect else ()),
            )
            print_table(title, columns, rows)
        else:
            typer.echo(f"{title}: no phase has run")
        for each in compared:
            key = each.disk.key
            for what, said in (("conflict", each.conflict), ("elsewhere", each.elsewhere)):
                if said:
                    typer.echo(f"  {what}: {key.phase}@{key.thinking_budget_tokens}: {said}")
        for conflict in wrong:
            typer.echo(f"  conflict: {conflict}")
        if one.barred:
            typer.echo(f"  no phase may be asked for: {one.barred}")
        typer.echo(
            f"  next: {one.next.reason}" + (f"\n        {one.next_command}" if one.next_command else "")
        )


def _run_state(run: FlowRun | None) -> tuple[str]:
    return (f"{run.state_name} ({run.name})" if run else "-",)


def _row(phase: PhaseStatus) -> tuple[str, ...]:
    open_state = "not run" if phase.state == "not_run" else "preflight only"
    verdict = {True: "complete, adequate", False: "complete, rejected", None: open_state}[phase.adequate]
    if phase.attempts > 1:
        verdict += f", attempt {phase.attempts}"
    short = [(digest or "-")[:12] for digest in (phase.go_sha256, phase.receipt_sha256)]
    return (str(phase.key.thinking_budget_tokens), phase.key.phase, verdict, *short)


def _plain(
    one: ExperimentStatus, compared: tuple[ComparedPhase, ...], wrong: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "approval_conflicts": list(wrong),
        "conflicts": [
            {
                "phase": each.disk.key.phase,
                "thinking_budget_tokens": each.disk.key.thinking_budget_tokens,
                "run": each.run.run_id if each.run else None,
                "conflict": each.conflict,
            }
            for each in compared
            if each.conflict
        ],
        "elsewhere": [
            {
                "phase": each.disk.key.phase,
                "thinking_budget_tokens": each.disk.key.thinking_budget_tokens,
                "queue": each.run.queue,
                "says": each.elsewhere,
            }
            for each in compared
            if each.run and each.elsewhere
        ],
        "experiment_id": one.experiment.experiment_id,
        "state": one.experiment.state,
        "source": one.source,
        "rungs": [
            {
                "thinking_budget_tokens": rung.thinking_budget_tokens,
                "max_num_seqs": rung.max_num_seqs,
                "status": one.rungs[rung.thinking_budget_tokens],
                "phases": [
                    {
                        "phase": phase.key.phase,
                        "state": phase.state,
                        "adequate": phase.adequate,
                        "attempts": phase.attempts,
                        "receipt_sha256": phase.receipt_sha256,
                        "go_sha256": phase.go_sha256,
                        **phase.counts,
                    }
                    for phase in one.phases
                    if phase.key.thinking_budget_tokens == rung.thinking_budget_tokens
                ],
            }
            for rung in one.experiment.rungs
        ],
        "next": {
            "state": one.next.state,
            "reason": one.next.reason,
            "command": one.next_command,
            "barred": one.barred,
        },
    }
