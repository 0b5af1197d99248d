"""`fitladder launch`: ask for one phase at one rung; the Prefect server puts the question to a reviewer."""

import getpass
from typing import Annotated

import typer

from fitladder.cli.options import Json, print_json
from fitladder.cli.protocol import check_registered
from fitladder.errors import EnvironmentNotReady, LadderRefused, UsageError
from fitladder.prefect_api.client import PrefectApi, api_from_environment
from fitladder.prefect_api.deployments import CPU_POOL, queue_names
from fitladder.prefect_api.follow import follow, refusal_of
from fitladder.prefect_api.runs import create_run
from fitladder.records.experiment import PHASES, Experiment
from fitladder.registry.binding import bind
from fitladder.registry.load import check_rung, load_registry
from fitladder.workspace import QUEUE, workspace_here

__all__ = ["launch"]

LAUNCH = "launch/launch"


def launch(
    experiment: Annotated[str, typer.Argument(help="An experiment id.")],
    *,
    phase: Annotated[str, typer.Option("--phase", help="probe, base or designed.")],
    budget: Annotated[int, typer.Option("--budget", help="The rung, by its thinking budget in tokens.")],
    resume: Annotated[
        bool, typer.Option("--resume", help="Another attempt at a phase that was interrupted.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Although an unused GO of it stands, whose run is lost.")
    ] = False,
    queue: Annotated[
        str | None,
        typer.Option("--queue", help="The host that has the root, by its work queue.", envvar=QUEUE),
    ] = None,
    requester: Annotated[str | None, typer.Option("--requester", help="Who asks; you, if left out.")] = None,
    wait_h: Annotated[int, typer.Option("--wait-h", min=1, help="Hours that the question stays open.")] = 24,
    valid_h: Annotated[int, typer.Option("--valid-h", min=1, help="Hours that a GO lasts, proposed.")] = 48,
    as_json: Json = False,
) -> None:
    """Ask for one phase at one rung. Nothing runs before somebody gives GO."""
    if phase not in PHASES:
        raise UsageError("--phase", got=repr(phase), need=" or ".join(PHASES))
    workspace = workspace_here()
    registry = load_registry(workspace.params)
    check_rung(registry.experiment(experiment), budget)
    check_registered(registry, registry.experiment(experiment), workspace.data)
    _check_open(registry.experiment(experiment))
    api = api_from_environment(workspace.environment)
    api.check_up()
    to = queue or workspace.queue
    _check_served(api, to)
    run = create_run(
        api,
        LAUNCH,
        {
            "experiment": experiment,
            "phase": phase,
            "budget": budget,
            "resume": resume,
            "again": again,
            "requester": requester or getpass.getuser(),
            "wait_s": wait_h * 3600,
            "valid_s": valid_h * 3600,
            "binding_sha256": bind(registry.experiment(experiment)).binding_sha256,
        },
        queue=to,
    )
    address = f"{api.ui_url}/runs/flow-run/{run.run_id}"
    if not as_json:
        typer.echo(f"launch {run.name}: {address}")
    run = follow(
        api,
        run.run_id,
        until=lambda one: one.state_type == "PAUSED",
        on_line=typer.echo,
        check_alive=lambda: None,
    )
    if run.is_final:
        raise refusal_of(run)
    go = f"fitladder go {experiment} --phase {phase} --budget {budget}"
    if as_json:
        print_json({"run_id": run.run_id, "url": address, "state": run.state_name, "answer_with": go})
    else:
        typer.echo(f"waits for a reviewer: there, or with `{go}`")


def _check_served(api: PrefectApi, queue: str) -> None:
    """Raises EnvironmentNotReady where no host ever had this queue: a launch to it would wait for ever."""
    known = queue_names(api, CPU_POOL)
    if queue not in known:
        raise EnvironmentNotReady(
            f"no host serves work queue {queue!a} at {api.url}",
            need=" or ".join(sorted(known)) or "an agent",
            do="start `fitladder agent --cpu --queue NAME` on the host that has the root",
        )


def _check_open(experiment: Experiment) -> None:
    """No phase of an experiment that ended is asked for. Raises LadderRefused, without a server too."""
    if experiment.state != "open":
        raise LadderRefused(
            f"{experiment.experiment_id} takes no further phase",
            got=f"state {experiment.state}",
            need="open",
            do=f"begin anew with `fitladder new NAME --from {experiment.experiment_id}`",
        )
