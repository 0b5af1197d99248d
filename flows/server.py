"""Prefect's own server, with a resume route that takes SQLite's write lock before it reads.

`resume_flow_run` of Prefect 3.9.1 opens a DEFERRED transaction, reads the run and then writes its next state.
Where another connection commits in between, as a polling worker's does, SQLite cannot turn the old snapshot
into a writer, whatever its busy timeout: "database is locked", HTTP 503. Under BEGIN IMMEDIATE, as the route
`set_state` has it, the transaction waits for its turn. PostgreSQL ignores the difference.

A program: `fitladder.prefect_api.processes.start_server` runs it by its path, in place of `prefect server
start`, and refuses any other version of Prefect. It lies in flows/ since nothing below src/ imports Prefect.
"""

import argparse
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi.requests import HTTPConnection
from prefect.server.api.flow_runs import resume_flow_run
from prefect.server.api.server import create_app
from prefect.server.database import PrefectDBInterface, provide_database_interface
from prefect.settings import get_current_settings
from sqlalchemy.ext.asyncio import AsyncSession

__all__ = ["build_app", "main"]


class ImmediateInterface(PrefectDBInterface):
    """Prefect's database, each transaction of which begins as a writer on SQLite."""

    @asynccontextmanager
    async def session_context(
        self, begin_transaction: bool = False, with_for_update: bool = False
    ) -> AsyncGenerator[AsyncSession, None]:
        """As Prefect's, whatever `with_for_update` says."""
        async with super().session_context(begin_transaction, with_for_update=True) as session:
            yield session


def provide_interface(connection: HTTPConnection) -> PrefectDBInterface:
    """Prefect's database interface; on the resume route, the one that begins as a writer."""
    usual = provide_database_interface()
    if connection.scope["endpoint"] is not resume_flow_run:
        return usual
    return ImmediateInterface(
        database_config=usual.database_config, query_components=usual.queries, orm=usual.orm
    )


def build_app() -> Any:
    """The application of `prefect server start`, background services and UI included, its resume mended."""
    app: Any = create_app(final=True)
    app.api_app.dependency_overrides[provide_database_interface] = provide_interface
    return app


def main() -> None:
    """Serve until SIGTERM or SIGINT, with the settings that `prefect server start` takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    chosen = parser.parse_args()
    server = get_current_settings().server
    uvicorn.run(
        build_app(),
        host=chosen.host,
        port=chosen.port,
        timeout_keep_alive=server.api.keepalive_timeout,
        ws_ping_interval=server.api.websocket_ping_interval,
        ws_ping_timeout=server.api.websocket_ping_timeout,
        log_level=server.logging_level.lower(),
    )


if __name__ == "__main__":
    main()
