"""`fitladder agent`: one worker of one pool on this host, with every setting it needs."""

import os
import socket
from typing import Annotated

import typer

from fitladder.orchestrator.processes import hear_signals, worker_command, worker_environment
from fitladder.orchestrator.reconcile import close_dead_runs
from fitladder.orchestrator.rest import api_from_environment
from fitladder.orchestrator.setup import CPU_POOL, DEFAULT_SLOT, GPU_POOL, ensure_pool, ensure_slot
from fitladder.phase.house import house_here

__all__ = ["agent"]


def agent(
    *,
    cpu: Annotated[bool, typer.Option("--cpu", help="Take launches and lineage instead of phases.")] = False,
    pool: Annotated[str | None, typer.Option("--pool", help="Another work pool than the usual one.")] = None,
    slot: Annotated[str, typer.Option("--slot", help="The device's slot; one a GPU.")] = DEFAULT_SLOT,
    name: Annotated[
        str | None, typer.Option("--name", help="The worker's name; this host's if left out.")
    ] = None,
) -> None:
    """Start a worker: approved phases, one at a time, or with --cpu launches and lineage."""
    house, api = house_here(), api_from_environment()
    work_pool = pool or (CPU_POOL if cpu else GPU_POOL)
    limit = 4 if cpu else 1
    ensure_pool(api, work_pool, None if cpu else 1)
    ensure_slot(api, slot)
    if not cpu:
        for closed in close_dead_runs(api, house):
            typer.echo(f"closed run {closed.run.name}, which is dead: {closed.state_name}: {closed.why}")
    environment = worker_environment(house.environment, api, house.folder, work_pool=work_pool, slot=slot)
    environment.setdefault("PREFECT_HOME", str(house.folder / ".prefect"))
    command = worker_command(work_pool, name or f"{socket.gethostname()}-{work_pool}", limit)
    takes = "launches and lineage" if cpu else f"approved phases, one at a time, on {slot}"
    typer.echo(f"agent of {work_pool} at {api.url}: takes {takes}, with {house.folder}")
    os.chdir(house.folder)
    hear_signals()
    os.execve(command[0], command, environment)
