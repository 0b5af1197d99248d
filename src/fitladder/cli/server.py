"""`fitladder server`: a Prefect server with this checkout's deployments, pools and slot, until Ctrl-C."""

import socket
import time
from pathlib import Path
from typing import Annotated

import typer

from fitladder.errors import UsageError
from fitladder.prefect_api.client import is_loopback
from fitladder.prefect_api.deployments import ensure_device, ensure_launches
from fitladder.prefect_api.processes import start_server, wait_healthy
from fitladder.prefect_api.session import deploy
from fitladder.workspace import workspace_here

__all__ = ["server"]

END_PATIENCE_S = 20.0
ANYWHERE = ("0.0.0.0", "::")  # not an address to go to


def server(
    *,
    port: Annotated[int, typer.Option("--port", help="Port to listen on.")] = 4200,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; loopback needs no auth.")
    ] = "127.0.0.1",
) -> None:
    """Start a Prefect server, deploy this checkout to it, and keep it until Ctrl-C.

    PREFECT_HOME says where its database lies (.prefect/ if unset). PREFECT_API_DATABASE_CONNECTION_URL
    names a PostgreSQL in its place; it is passed on, as every PREFECT_SERVER_ variable is.
    """
    workspace = workspace_here()
    is_open = not is_loopback(host)
    if is_open and not workspace.environment.get("PREFECT_SERVER_API_AUTH_STRING"):
        raise UsageError(
            "--host",
            got=f"{host}, which others reach, and no auth string",
            need="PREFECT_SERVER_API_AUTH_STRING=USER:SECRET, and PREFECT_API_AUTH_STRING the same",
            do="set both, here and where agents run; or leave --host out",
        )
    home = Path(workspace.environment.get("PREFECT_HOME") or workspace.folder / ".prefect")
    home.mkdir(parents=True, exist_ok=True)
    child, api = start_server(workspace, home, port, host=host)
    try:
        wait_healthy(child, api)
        ensure_launches(api)
        ensure_device(api)
        deploy(workspace, api, home / "deploy.log")
        typer.echo(f"Prefect server at {api.ui_url}; in other terminals:")
        typer.echo(f"  export PREFECT_API_URL={api.url}")
        if is_open:
            reached = socket.getfqdn() if host in ANYWHERE else host
            typer.echo(f"  export PREFECT_API_URL=http://{reached}:{port}/api    # on other hosts")
            typer.echo("  export PREFECT_API_AUTH_STRING=...    # the server's")
        typer.echo("  fitladder agent --cpu    # launches and lineage")
        typer.echo("  fitladder agent          # phases, on the host with the device")
        while True:
            child.check_alive()
            time.sleep(1.0)
    finally:
        child.end(END_PATIENCE_S)
