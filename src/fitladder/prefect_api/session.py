"""A Prefect server with everything deployed and a worker for each pool, for the time of one program.

An existing server is used where PREFECT_API_URL names one. Otherwise a private one is started, whose database
is below `home`; runs that an earlier, dead session left there are named and closed first.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fitladder.errors import EnvironmentNotReady
from fitladder.prefect_api.client import PrefectApi, api_from_environment
from fitladder.prefect_api.dead_runs import close_dead_runs
from fitladder.prefect_api.deployments import (
    CPU_POOL,
    GPU_POOL,
    claim_queue,
    ensure_device,
    ensure_launches,
    release_slot,
)
from fitladder.prefect_api.processes import (
    Child,
    end_all,
    free_port,
    last_line,
    start_server,
    start_worker,
    wait_healthy,
    worker_environment,
)
from fitladder.prefect_api.runs import FlowRun, flow_runs, set_state
from fitladder.workspace import Workspace

__all__ = ["Session", "deploy", "open_session"]

WORKER_PATIENCE_S = 60.0
END_PATIENCE_S = 20.0
POLL_S = 1  # somebody watches, and the workers end with the session
FLOWS = ("launch", "handoff", "phase", "scheduled-phase", "lineage", "study")


@dataclass(frozen=True)
class Session:
    """A server that is ready to take launches, and the processes that this session started."""

    api: PrefectApi
    children: tuple[Child, ...]

    def check_alive(self) -> None:
        """Raise EnvironmentNotReady where one of these processes ended."""
        for child in self.children:
            child.check_alive()


def deploy(workspace: Workspace, api: PrefectApi, log: Path) -> None:
    """Deploy prefect.yaml to the server. Raises EnvironmentNotReady with the command's last line.

    FITLADDER_CHECKOUT stays open in the deployments: each worker fills in its own.
    """
    environment = {
        **{name: value for name, value in workspace.environment.items() if name != "FITLADDER_CHECKOUT"},
        "PREFECT_API_URL": api.url,
        "DO_NOT_TRACK": "1",
    }
    with log.open("ab") as stream:
        done = subprocess.run(
            [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"],
            cwd=workspace.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            timeout=120,
            check=False,
        )
    if done.returncode != 0:
        raise EnvironmentNotReady("prefect.yaml was not deployed", got=last_line(log), do=f"see {log}")


def close_left_runs(api: PrefectApi) -> tuple[FlowRun, ...]:
    """Close the runs that a dead session of this private server left unfinished; no process has them."""
    left = [run for flow in FLOWS for run in flow_runs(api, flow) if not run.is_final]
    for run in left:
        final = (
            ("CANCELLED", "Abandoned")
            if run.state_type in ("PAUSED", "SCHEDULED")
            else ("CRASHED", "Crashed")
        )
        set_state(api, run, final[0], final[1], "its session ended before it did")
    return tuple(left)


@contextlib.contextmanager
def open_session(
    workspace: Workspace, home: Path, *, port: int | None = None, tell: Callable[[str], None]
) -> Iterator[Session]:
    """Open a session; its processes end with the block, whatever happens.

    Args:
        home: folder of the private server's database and of all logs.
        port: port of the private server; a free one where None.
        tell: called with one line at each step.
    """
    with contextlib.ExitStack() as stack:
        children: list[Child] = []
        if workspace.environment.get("PREFECT_API_URL"):
            api = api_from_environment(workspace.environment)
            api.read("/health", patience_s=5.0)
            tell(f"Prefect server at {api.url}, as PREFECT_API_URL says")
            claim_queue(api, workspace.queue, workspace.folder)
            for closed in close_dead_runs(api, workspace):
                tell(f"closed {closed.run.flow} {closed.run.name}: {closed.state_name}: {closed.why}")
        else:
            home.mkdir(parents=True, exist_ok=True)
            server, api = start_server(workspace, home, port or free_port())
            stack.callback(server.end, END_PATIENCE_S)
            children.append(server)
            wait_healthy(server, api)
            tell(f"Prefect server at {api.ui_url}")
            for run in close_left_runs(api):
                tell(f"closed {run.flow} {run.name}: {run.state_name} since an earlier session")
        ensure_launches(api, workspace.queue)
        ensure_device(api, workspace.queue, workspace.device)
        if children:
            release_slot(api, workspace.slot)
        logs = home
        workers: list[Child] = []
        stack.callback(end_all, workers, END_PATIENCE_S)
        for pool, limit in ((CPU_POOL, 4), (GPU_POOL, 1)):
            environment = worker_environment(workspace, api, work_pool=pool, poll_s=POLL_S)
            environment.setdefault("PREFECT_HOME", str(home))
            worker = start_worker(
                workspace, pool, f"rehearsal-{pool}", limit, environment, log=logs / f"{pool}.log"
            )
            workers.append(worker)
        children += workers
        deploy(workspace, api, logs / "deploy.log")
        session = Session(api, tuple(children))
        _wait_ready(session)
        yield session


def _wait_ready(session: Session) -> None:
    deadline = time.monotonic() + WORKER_PATIENCE_S
    waiting = {CPU_POOL, GPU_POOL}
    while waiting:
        session.check_alive()
        for pool in sorted(waiting):
            if session.api.find(f"/work_pools/{pool}/workers/filter", {"limit": 5}):
                waiting.discard(pool)
        if waiting and time.monotonic() > deadline:
            raise EnvironmentNotReady(f"no worker for {', '.join(sorted(waiting))}", do="see its log")
        if waiting:
            time.sleep(0.2)
