"""`fitladder agent`: one worker of one pool on this host, with every setting it needs."""

import os
import socket
from dataclasses import replace
from typing import Annotated

import typer

from fitladder.prefect_api.client import api_from_environment
from fitladder.prefect_api.dead_runs import close_dead_runs
from fitladder.prefect_api.deployments import (
    CPU_POOL,
    GPU_POOL,
    check_queue_name,
    claim_queue,
    ensure_device,
    ensure_launches,
    ensure_window,
)
from fitladder.prefect_api.processes import reset_signals, worker_command, worker_environment
from fitladder.workspace import DEVICE, QUEUE, workspace_here

__all__ = ["agent"]


def agent(
    *,
    cpu: Annotated[bool, typer.Option("--cpu", help="Take launches and lineage instead of phases.")] = False,
    pool: Annotated[str | None, typer.Option("--pool", help="Another work pool than the usual one.")] = None,
    queue: Annotated[
        str | None,
        typer.Option("--queue", help="This host's work queue, where several share a server.", envvar=QUEUE),
    ] = None,
    slot: Annotated[
        str | None, typer.Option("--slot", help="The device's slot; one a GPU.", envvar=DEVICE)
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The worker's name; this host's if left out.")
    ] = None,
) -> None:
    """Start a worker: approved phases, one at a time, or with --cpu launches and lineage."""
    workspace, api = workspace_here(), api_from_environment()
    workspace = replace(
        workspace, environment={**workspace.environment, QUEUE: queue or "", DEVICE: slot or ""}
    )
    work_pool = pool or (CPU_POOL if cpu else GPU_POOL)
    limit = 4 if cpu else 1
    check_queue_name(workspace.queue)
    claim_queue(api, workspace.queue, workspace.folder)
    if cpu:
        ensure_launches(api, workspace.queue, work_pool)
    else:
        ensure_device(api, workspace.queue, workspace.device, work_pool)
        ensure_window(api, workspace.queue)
        for closed in close_dead_runs(api, workspace):
            typer.echo(f"closed run {closed.run.name}, which is dead: {closed.state_name}: {closed.why}")
    environment = worker_environment(workspace, api, work_pool=work_pool)
    environment.setdefault("PREFECT_HOME", str(workspace.folder / ".prefect"))
    command = worker_command(
        work_pool, workspace.queue, name or f"{socket.gethostname()}-{work_pool}-{workspace.device}", limit
    )
    takes = "launches and lineage" if cpu else f"approved phases, one at a time, on {workspace.device}"
    typer.echo(
        f"agent of {work_pool}, queue {workspace.queue}, at {api.url}: takes {takes}, with {workspace.folder}"
    )
    os.chdir(workspace.folder)
    reset_signals()
    os.execve(command[0], command, environment)
