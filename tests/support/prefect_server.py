"""A real Prefect server, real workers and a scripted checkout with many small experiments.

One server and its workers are shared by every test that needs them; each test uses an experiment of its own,
so that none can see another's root or approvals.
"""

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support.approvals import filled, key_of
from support.checkout import ROOT, ScriptedCheckout, make_scripted_checkout
from support.study_text import study_text

from fitladder.approval.chain import chain_path, load_chain
from fitladder.approval.form import ask_of_schema
from fitladder.phase.ask import decide, open_ask
from fitladder.phase.dispatch import check_ready
from fitladder.prefect_api.client import PrefectApi
from fitladder.prefect_api.deployments import (
    CPU_POOL,
    DEFAULT_SLOT,
    GPU_POOL,
    ensure_device,
    ensure_launches,
    release_slot,
)
from fitladder.prefect_api.processes import (
    Child,
    end_all,
    free_port,
    start,
    start_server,
    start_worker,
    wait_healthy,
    worker_environment,
)
from fitladder.prefect_api.runs import (
    FlowRun,
    create_run,
    flow_runs,
    input_schema,
    read_run,
    resume_run,
    set_state,
)
from fitladder.prefect_api.session import FLOWS, deploy
from fitladder.records.layout import bundle_folder
from fitladder.records.work_queue import DEFAULT_QUEUE
from fitladder.workspace import Workspace

EXPERIMENTS = 24
OWNER = "olga"  # owns the GPU pool; asks for nearly everything, so that only one launch needs her hand-off


CELLS = """
cells:
  - {width: 12, capture: none, pool_blocks: 14, admission: worst_case, samples: 12}
"""


class PrefectCheckout(ScriptedCheckout):
    """A scripted checkout as a Prefect worker sees it: its process's environment, and a study."""

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {
            "FITLADDER_ENGINE_PYTHON": str(self.folder / "cell-python"),
            "PREFECT_WORKER_QUERY_SECONDS": "1",  # tests wait for their workers
        }

    def workspace(self) -> Workspace:
        return Workspace(self.folder, {**os.environ, **self.environment})


def make_prefect_checkout(folder: Path) -> PrefectCheckout:
    """A checkout with `EXPERIMENTS` equal experiments, ready for a worker."""
    made = PrefectCheckout(folder, make_scripted_checkout(folder, _gpu_owners={GPU_POOL: OWNER}).document)
    made.replace_by_copies(EXPERIMENTS)
    _add_study(folder)
    deployments = folder / "prefect.yaml"
    text = deployments.read_text()
    assert "active: true" in text
    deployments.write_text(text.replace("active: true", "active: false"))  # ticks are each test's own
    return made


def _add_study(folder: Path) -> None:
    """`data/studies/small`, whose cells are scripted."""
    study = folder / "data" / "studies" / "small" / "study.yaml"
    study.parent.mkdir(parents=True)
    study.write_text(study_text("small", CELLS, engines_at_once=1))
    (folder / "cells.json").write_text("{}")
    cell = shlex.join([sys.executable, str(ROOT / "tests" / "unit" / "study" / "scripted_cell.py")])
    python = folder / "cell-python"  # called as PYTHON -P -m MODULE REQUEST EVENTS_FD
    python.write_text(f'#!/bin/sh\nexec {cell} {folder}/cells.log {folder}/cells.json "$4" "$5"\n')
    python.chmod(0o755)


@dataclass
class PrefectServer:
    """The shared server with one checkout deployed."""

    checkout: PrefectCheckout
    home: Path
    port: int
    server: Child
    api: PrefectApi
    taken: int = 0
    asks: int = 0
    children: dict[str, Child] = field(default_factory=dict)  # workers by name

    def fresh_experiment(self) -> str:
        """An experiment that no test has touched."""
        self.taken += 1
        assert self.taken <= EXPERIMENTS, "register more experiments"
        return self.checkout.copies[self.taken - 1]

    def restart(self) -> None:
        """Kill the server without a word and start it again on its database."""
        self.server.process.kill()
        self.server.end(10.0)
        self.server, self.api = start_server(self.checkout.workspace(), self.home, self.port)
        wait_healthy(self.server, self.api)

    def need(self, *names: str) -> None:
        """A live worker of each name: `cpu...` for launches, `gpu...` for phases."""
        for name in names:
            child = self.children.get(name)
            if child is None or child.process.poll() is not None:
                self.children[name] = self._worker(CPU_POOL if name.startswith("cpu") else GPU_POOL, name)

    def agent(self, name: str) -> str:
        """A worker for phases by `fitladder agent` itself; returns what it says before it becomes one."""
        log = self.home / f"{name}.log"
        command = [
            sys.executable,
            "-c",
            "from fitladder.cli.main import main; main()",
            "agent",
            "--name",
            name,
        ]
        environment = self._environment(GPU_POOL)
        self.children[name] = start(name, command, environment, log, self.checkout.folder)
        deadline = time.monotonic() + 60
        while "agent of" not in (said := log.read_text()):
            self.children[name].check_alive()
            assert time.monotonic() < deadline, said
            time.sleep(0.1)
        return said

    def allow(self, phases: int) -> None:
        """So many phases at once, although there is one device: for runs that must meet."""
        for path in (f"/work_pools/{GPU_POOL}", f"/work_pools/{GPU_POOL}/queues/{DEFAULT_QUEUE}"):
            assert self.api.request("PATCH", path, {"concurrency_limit": phases}).status == 204

    def end_workers(self, patience_s: float = 20.0) -> None:
        """No worker is left."""
        end_all(tuple(self.children.values()), patience_s)
        self.children.clear()

    def _environment(self, pool: str) -> dict[str, str]:
        environment = worker_environment(self.checkout.workspace(), self.api, work_pool=pool)
        return environment | {"PREFECT_HOME": str(self.home)}

    def _worker(self, pool: str, name: str) -> Child:
        log, environment = self.home / f"{name}.log", self._environment(pool)
        return start_worker(self.checkout.workspace(), pool, name, 6, environment, log=log)

    def launch(self, experiment: str, phase: str = "probe", budget: int = 64, **more: Any) -> FlowRun:
        parameters = {
            "experiment": experiment,
            "phase": phase,
            "budget": budget,
            "requester": OWNER,
            "starts_lineage": False,
        }
        return create_run(self.api, "launch/launch", parameters | more)

    def tick(self, *, after_s: float, deployment: str = "scheduled-phase") -> FlowRun:
        """A tick of the schedule, so many seconds from now."""
        due = (datetime.now(UTC) + timedelta(seconds=after_s)).isoformat()
        found = self.api.read(f"/deployments/name/scheduled-phase/{deployment}")
        state = {"type": "SCHEDULED", "state_details": {"scheduled_time": due}}
        answer = self.api.request(
            "POST", f"/deployments/{found['id']}/create_flow_run", {"parameters": {}, "state": state}
        )
        return read_run(self.api, answer.body["id"])

    def wait(
        self, run: FlowRun, until: Callable[[FlowRun], bool] = lambda run: run.is_final, limit_s: float = 90.0
    ) -> FlowRun:
        """The run once `until` holds. Fails with its state after `limit_s`."""
        deadline = time.monotonic() + limit_s
        while True:
            now = read_run(self.api, run.run_id)
            if until(now):
                return now
            assert time.monotonic() < deadline, (
                f"{now.flow} {now.name} is still {now.state_name}: {now.message}"
            )
            time.sleep(0.25)

    def suspended(self, run: FlowRun) -> FlowRun:
        """The launch, or hand-off, once it waits for its form."""
        now = self.wait(run, lambda one: one.is_final or one.state_type == "PAUSED")
        assert now.state_type == "PAUSED", f"{now.state_name}: {now.message}"
        until = time.monotonic() + 10
        while self.api.read(f"/flow_runs/{run.run_id}/input/{_schema_key(self.api, now)}") is None:
            assert time.monotonic() < until, "a suspended run without its form"
            time.sleep(0.1)
        return now

    def form(self, run: FlowRun, **changes: Any) -> dict[str, Any]:
        """The form of a suspended launch as an attentive reviewer fills it in."""
        form = filled(ask_of_schema(input_schema(self.api, run)))
        return {**form, "reviewer": "jan", **changes}

    def approve(self, run: FlowRun, **changes: Any) -> FlowRun:
        """Answer a suspended launch; returns it as it was."""
        waiting = self.suspended(run)
        resume_run(self.api, waiting, self.form(waiting, **changes))
        return waiting

    def approved_phase(self, experiment: str, *, resume: bool = False) -> FlowRun:
        """A dispatched probe, its GO recorded by the core: for tests of what happens from there on."""
        workspace, key, now = self.checkout.workspace(), key_of("probe", 64, experiment), datetime.now(UTC)
        self.asks += 1
        ask = open_ask(
            workspace, key, ask_id=f"core-{self.asks}", requester=OWNER, now=now, wait_s=3600, resume=resume
        )
        decide(workspace, ask, filled(ask), datetime.now(UTC))
        ready = check_ready(workspace, ask, GPU_POOL, datetime.now(UTC))
        return create_run(self.api, "phase/phase", {**ready.parameters, "starts_lineage": False})

    def settle(self) -> None:
        """Leave nothing for the next test: no open run, no taken device, no engine."""
        for flow in FLOWS:
            for run in flow_runs(self.api, flow):
                if not run.is_final:
                    set_state(self.api, run, "CANCELLED", "Cancelled", "the test is over")
        deadline = time.monotonic() + 30
        while self.engines():
            assert time.monotonic() < deadline, "an engine outlives its test"
            time.sleep(0.1)
        release_slot(self.api, DEFAULT_SLOT)

    def generating(self, experiment: str, times: int = 1) -> None:
        """Return once the experiment's engines were told to generate so often."""
        deadline = time.monotonic() + 60
        while len(self.generated(experiment)) < times:
            assert time.monotonic() < deadline, f"{experiment} never generated"
            time.sleep(0.1)

    def engines(self) -> list[int]:
        """Engine processes of this checkout that are alive."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if str(self.checkout.generations).encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
        return found

    def phases(self, experiment: str) -> list[FlowRun]:
        """Phase runs of one experiment, oldest first."""
        return [run for run in flow_runs(self.api, "phase") if run.parameters.get("experiment") == experiment]

    def phase(self, experiment: str, limit_s: float = 60.0) -> FlowRun:
        """The one phase run of an experiment, once it was dispatched."""
        deadline = time.monotonic() + limit_s
        while not (found := self.phases(experiment)):
            assert time.monotonic() < deadline, f"no phase of {experiment} was dispatched"
            time.sleep(0.15)
        assert len(found) == 1
        return found[0]

    def kinds(self, experiment: str) -> list[str]:
        """The kinds in an experiment's approval chain."""
        workspace = self.checkout.workspace()
        return [entry.kind for entry in load_chain(chain_path(workspace.approvals, experiment), experiment)]

    def generated(self, experiment: str) -> list[str]:
        """`phase@budget` of every generation of one experiment that was begun."""
        return [line.partition("/")[2] for line in self.checkout.lines() if line.startswith(f"{experiment}/")]

    def on_disk(self, experiment: str, attempt: int = 1) -> list[str]:
        """File names of a probe's bundle."""
        place = bundle_folder(key_of("probe", 64, experiment), attempt)
        folder = self.checkout.folder / "artifacts" / experiment / place
        return sorted(os.listdir(folder)) if folder.exists() else []


def _schema_key(api: PrefectApi, run: FlowRun) -> str:
    document = api.read(f"/flow_runs/{run.run_id}")
    return str(document["state"]["state_details"]["run_input_keyset"]["schema"])


@contextlib.contextmanager
def open_prefect(folder: Path) -> Iterator[PrefectServer]:
    """A server with everything deployed and no worker."""
    home = folder / "prefect"
    home.mkdir()
    checkout = make_prefect_checkout(folder / "checkout")
    port = free_port()
    server, api = start_server(checkout.workspace(), home, port)
    shared = PrefectServer(checkout, home, port, server, api)
    try:
        wait_healthy(server, api)
        ensure_launches(api)
        ensure_device(api)
        deploy(checkout.workspace(), api, home / "deploy.log")
        yield shared
    finally:
        shared.end_workers()
        shared.server.end(15.0)
