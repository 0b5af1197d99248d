"""`fitladder server`: a Prefect server with this checkout's deployments, pools and slot, until Ctrl-C."""

import time
from pathlib import Path
from typing import Annotated

import typer

from fitladder.orchestrator.processes import start_server, wait_healthy
from fitladder.orchestrator.session import deploy
from fitladder.orchestrator.setup import CPU_POOL, DEFAULT_SLOT, GPU_POOL, ensure_pool, ensure_slot
from fitladder.phase.house import house_here

__all__ = ["server"]

END_PATIENCE_S = 20.0


def server(
    *,
    port: Annotated[int, typer.Option("--port", help="Port to listen on.")] = 4200,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; loopback needs no auth.")
    ] = "127.0.0.1",
) -> None:
    """Start a Prefect server, tell it of this checkout, and keep it until Ctrl-C.

    PREFECT_HOME says where its database lies (.prefect/ if unset); every other PREFECT_SERVER_ variable,
    such as PREFECT_SERVER_DATABASE_CONNECTION_URL, is passed on.
    """
    house = house_here()
    home = Path(house.environment.get("PREFECT_HOME") or house.folder / ".prefect")
    home.mkdir(parents=True, exist_ok=True)
    child, api = start_server(home, port, house.environment, host=host)
    try:
        wait_healthy(child, api)
        ensure_pool(api, CPU_POOL, None)
        ensure_pool(api, GPU_POOL, 1)
        ensure_slot(api, DEFAULT_SLOT)
        deploy(house, api, home / "deploy.log")
        typer.echo(f"Prefect server at {api.ui_url}; in other terminals:")
        typer.echo(f"  export PREFECT_API_URL={api.url}")
        typer.echo("  fitladder agent --cpu    # launches and lineage")
        typer.echo("  fitladder agent          # phases, on the host with the device")
        while True:
            child.check_alive()
            time.sleep(1.0)
    finally:
        child.end(END_PATIENCE_S)
