"""Prefect server and workers as child processes: their settings, start, supervision and end.

Each child leads a process group, so that Ctrl-C reaches only this program, which ends them in order; on Linux
the kernel ends them too when this program is killed. Their settings are complete here and nowhere else.
"""

import contextlib
import ctypes
import errno
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from fitladder.errors import EnvironmentNotReady, UsageError
from fitladder.prefect_api.client import PrefectApi
from fitladder.workspace import DEVICE, QUEUE, Workspace

__all__ = [
    "PREFECT_VERSION",
    "Child",
    "end_all",
    "free_port",
    "last_line",
    "reset_signals",
    "server_environment",
    "start",
    "start_server",
    "start_worker",
    "wait_healthy",
    "worker_command",
    "worker_environment",
]

LOG = logging.getLogger(__name__)

SERVER_PATIENCE_S = 90.0
LAST_PORT = 65_535
PREFECT_VERSION = "3.9.1"  # whose resume route flows/server.py was read and measured for
AGENT_POLL_S = 5  # a server with two agents at rest: 10 % of a core at 1 s, 4 % at 5 s, 2.4 % at 15 s
PR_SET_PDEATHSIG = 1
SERVER_SETTINGS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_UI_V2_ENABLED": "false",  # the V2 interface asks an outside host when it loads
    "PREFECT_SERVER_UI_API_URL": "/api",  # whatever host and port the page was loaded from
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
}
WORKER_SETTINGS = {
    "PREFECT_WORKER_PREFETCH_SECONDS": "1",
    "PREFECT_WORKER_ENABLE_CANCELLATION": "true",
    "PREFECT_LOGGING_LEVEL": "INFO",
    "DO_NOT_TRACK": "1",
}


@dataclass
class Child:
    """A process of ours and its whole group."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path
    is_terminated: bool = False

    def check_alive(self) -> None:
        """Raises EnvironmentNotReady with the end of its log where it is gone."""
        if self.process.poll() is not None:
            raise EnvironmentNotReady(
                f"the {self.name} ended with code {self.process.returncode}",
                got=last_line(self.log),
                do=f"see {self.log}",
            )

    def terminate(self) -> None:
        """SIGTERM to the group, once: Prefect takes a second one for SIGKILL."""
        if not self.is_terminated:
            self.is_terminated = True
            self._signal(signal.SIGTERM)

    def end(self, patience_s: float) -> None:
        """SIGTERM to the group, then SIGKILL to what is left after `patience_s`. May be repeated."""
        self.terminate()
        self._wait(patience_s)
        if _group_lives(self.process):
            self._signal(signal.SIGKILL)
            self._wait(5.0)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def _wait(self, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while _group_lives(self.process) and time.monotonic() < deadline:
            time.sleep(0.05)


def end_all(children: Sequence[Child], patience_s: float) -> None:
    """End several at once, so that none waits for another's patience."""
    for child in children:
        child.terminate()
    deadline = time.monotonic() + patience_s
    for child in children:
        child.end(max(0.0, deadline - time.monotonic()))


def _group_lives(process: "subprocess.Popen[bytes]") -> bool:
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def last_line(path: Path) -> str:
    """The last line of a log that is not empty."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return "nothing logged"
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "nothing logged")


def reset_signals() -> None:
    """Restore SIGINT and SIGTERM, which a shell ignores for background jobs.

    Prefect's worker turns a SIGTERM into a SIGINT for itself, so that one which ignores SIGINT never ends.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _before_exec() -> None:
    """In the child: take signals, and on Linux end with the parent."""
    reset_signals()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def start(name: str, command: list[str], environment: Mapping[str, str], log: Path, folder: Path) -> Child:
    """A child in a process group of its own, its output in `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as stream:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
            preexec_fn=_before_exec,  # noqa: PLW1509 - we start children before any thread
        )
    LOG.debug("started %s: process %d, output in %s", name, process.pid, log)
    return Child(name, process, log)


def free_port() -> int:
    """A port on loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def server_environment(inherited: Mapping[str, str], home: Path) -> dict[str, str]:
    """A server with its own database below `home`, without analytics."""
    kept = {name: value for name, value in inherited.items() if name != "PREFECT_API_URL"}
    return kept | SERVER_SETTINGS | {"PREFECT_HOME": str(home)}


def worker_environment(
    workspace: Workspace, api: PrefectApi, *, work_pool: str, poll_s: int = AGENT_POLL_S
) -> dict[str, str]:
    """A worker of one pool on this host; deployments find checkout, queue and device through it.

    `poll_s`: seconds between two looks for runs, unless the workspace's PREFECT_WORKER_QUERY_SECONDS says so.
    """
    settings = {
        "PREFECT_API_URL": api.url,
        "FITLADDER_CHECKOUT": str(workspace.folder),
        "FITLADDER_WORK_POOL": work_pool,
        QUEUE: workspace.queue,
        DEVICE: workspace.device,
    }
    if api.auth:
        settings["PREFECT_API_AUTH_STRING"] = api.auth
    polling = {"PREFECT_WORKER_QUERY_SECONDS": str(poll_s)}
    return {**WORKER_SETTINGS, **polling, **workspace.environment, **settings}


def check_prefect() -> None:
    """Raises EnvironmentNotReady where the installed Prefect is not the one that flows/server.py mends."""
    try:
        found = metadata.version("prefect")
    except metadata.PackageNotFoundError:
        found = "none"
    if found != PREFECT_VERSION:
        raise EnvironmentNotReady(
            "the server's resume route is mended for one version of Prefect",
            got=found,
            need=PREFECT_VERSION,
            do="install what locks/orchestrate.txt names: `make setup`",
        )


def server_command(workspace: Workspace, host: str, port: int) -> list[str]:
    """Command line of the checkout's own server, by path: it runs where Prefect finds no settings file."""
    program = workspace.folder / "flows/server.py"
    return [sys.executable, "-P", str(program), "--host", host, "--port", str(port)]


def start_server(
    workspace: Workspace, home: Path, port: int, *, host: str = "127.0.0.1"
) -> tuple[Child, PrefectApi]:
    """Start a server; `wait_healthy` tells when it answers. Raises EnvironmentNotReady."""
    if not 1 <= port <= LAST_PORT:
        raise UsageError("port", got=port, need=f"1 to {LAST_PORT}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise EnvironmentNotReady(
                f"port {port} is taken"
                if error.errno == errno.EADDRINUSE
                else f"no server can listen at {host}",
                got=error.strerror,
                do="name another one, or stop who uses it",
            ) from error
    check_prefect()
    environment = server_environment(workspace.environment, home)
    command = server_command(workspace, host, port)
    child = start("Prefect server", command, environment, home / "server.log", home)
    reach = "127.0.0.1" if host == "0.0.0.0" else host
    return child, PrefectApi(
        f"http://{reach}:{port}/api", workspace.environment.get("PREFECT_API_AUTH_STRING")
    )


def wait_healthy(child: Child, api: PrefectApi) -> None:
    """Wait until the server answers. Raises EnvironmentNotReady where it ends or takes too long."""
    deadline = time.monotonic() + SERVER_PATIENCE_S
    while not api.is_healthy():
        child.check_alive()
        if time.monotonic() > deadline:
            raise EnvironmentNotReady(
                f"the Prefect server gave no sign within {SERVER_PATIENCE_S:.0f} s",
                got=last_line(child.log),
                do=f"see {child.log}",
            )
        time.sleep(0.2)


def worker_command(work_pool: str, queue: str, name: str, limit: int) -> list[str]:
    """Command line of a worker that installs nothing and takes no other host's runs."""
    return [
        sys.executable, "-m", "prefect", "worker", "start", "--pool", work_pool, "--type", "process",
        "--work-queue", queue, "--name", name, "--limit", str(limit), "--install-policy", "never",
    ]  # fmt: skip


def start_worker(
    workspace: Workspace, work_pool: str, name: str, limit: int, environment: Mapping[str, str], *, log: Path
) -> Child:
    """A worker process; it is ready once its pool lists it."""
    command = worker_command(work_pool, workspace.queue, name, limit)
    return start(f"worker {name}", command, environment, log, workspace.folder)
