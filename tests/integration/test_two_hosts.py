"""Two hosts on one server, each with its own checkout, queue and roots: what is asked of one runs there only.

The second is another checkout on this machine; its agents are the product's own. Engines are scripted.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.approvals import key_of
from support.prefect_server import PrefectCheckout, PrefectServer, make_prefect_checkout

from fitladder.approval.chain import chain_path, load_chain
from fitladder.prefect_api.deployments import GPU_POOL, claim_queue, ensure_device
from fitladder.prefect_api.processes import Child, end_all, start
from fitladder.prefect_api.runs import FlowRun, create_run
from fitladder.records.layout import bundle_folder
from fitladder.records.work_queue import DEFAULT_QUEUE

pytestmark = pytest.mark.server
QUEUE = "gpuhost"
FITLADDER = [sys.executable, "-c", "from fitladder.cli.main import main; main()"]


@dataclass
class Hosts:
    """The shared server's own checkout serves `default`; `other` serves `gpuhost`."""

    prefect: PrefectServer
    other: PrefectCheckout
    children: list[Child] = field(default_factory=list)

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        where = {"PREFECT_API_URL": self.prefect.api.url, "PREFECT_HOME": str(self.prefect.home)}
        return kept | self.other.environment | where | more

    def call(self, *words: str, folder: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*FITLADDER, *words],
            cwd=folder or self.other.folder,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def agent(self, *words: str) -> None:
        log = self.other.folder / f"agent{len(self.children)}.log"
        environment = self.environment(FITLADDER_QUEUE=QUEUE)
        self.children.append(
            start("agent", [*FITLADDER, "agent", *words], environment, log, self.other.folder)
        )
        deadline = time.monotonic() + 60
        while f"queue {QUEUE}" not in log.read_text():
            self.children[-1].check_alive()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)

    def has(self, checkout: PrefectCheckout, experiment: str, file: str) -> bool:
        place = bundle_folder(key_of("probe", 64, experiment), 1)
        return (checkout.folder / "artifacts" / experiment / place / file).exists()


@pytest.fixture(scope="module")
def hosts(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    hosts = Hosts(prefect_server, make_prefect_checkout(tmp_path_factory.mktemp("gpuhost") / "checkout"))
    claim_queue(prefect_server.api, DEFAULT_QUEUE, prefect_server.checkout.folder)
    prefect_server.need("cpu", "gpu")
    try:
        hosts.agent()
        hosts.agent("--cpu")
        yield hosts
    finally:
        end_all(hosts.children, 15.0)
        prefect_server.settle()


def _sent(hosts: Hosts, experiment: str, *words: str) -> FlowRun:
    """`fitladder launch` as a person types it; returns the suspended run."""
    asked = ("launch", experiment, "--phase=probe", "--budget=64", "--requester=olga", "--json", *words)
    done = hosts.call(*asked)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    return hosts.prefect.suspended(FlowRun(said["run_id"], "", "launch", "", "", "", {}))


def test_two_hosts_run_two_experiments_at_once_each_where_its_root_is(hosts: Hosts) -> None:
    prefect, here, there = hosts.prefect, hosts.prefect.fresh_experiment(), hosts.prefect.fresh_experiment()
    for checkout in (prefect.checkout, hosts.other):
        checkout.script(outcomes=["close:20"], delay_s=8.0)
    launches = prefect.launch(here), _sent(hosts, there, f"--queue={QUEUE}")
    for waiting in map(prefect.suspended, launches):  # both wait, so that both GOs come at once
        prefect.approve(waiting)
    deadline = time.monotonic() + 60
    while not (prefect.generated(here) and any(there in line for line in hosts.other.lines())):
        assert time.monotonic() < deadline, "the two never generated"
        time.sleep(0.1)
    runs = {name: prefect.phase(name) for name in (here, there)}
    assert {run.state_type for run in runs.values()} == {"RUNNING"}  # neither waited for the other
    assert (runs[here].queue, runs[there].queue) == ("default", QUEUE)
    assert {prefect.wait(run).state_name for run in runs.values()} == {"Completed"}
    assert hosts.has(hosts.other, there, "receipt.json")
    assert not hosts.has(prefect.checkout, there, "preflight.json")
    assert hosts.has(prefect.checkout, here, "receipt.json")
    assert not hosts.has(hosts.other, here, "preflight.json")
    assert prefect.generated(there) == []  # the first host's engine heard nothing of it
    pool = prefect.api.read(f"/work_pools/{GPU_POOL}")
    queues = {name: prefect.api.read(f"/work_pools/{GPU_POOL}/queues/{name}") for name in ("default", QUEUE)}
    assert [one["concurrency_limit"] for one in (pool, *queues.values())] == [2, 1, 1]
    for slot in ("gpu-0", f"{QUEUE}-gpu-0"):
        assert prefect.api.read(f"/v2/concurrency_limits/{slot}")["limit"] == 1

    moved = prefect.wait(create_run(prefect.api, "phase/phase", dict(runs[there].parameters)))
    assert moved.state_type == "FAILED"  # the same GO at the first host, whose root has nothing of it
    assert f"is for another host: got work queue {QUEUE}, need work queue default" in moved.message
    assert not hosts.has(prefect.checkout, there, "preflight.json")

    wrong = hosts.call("launch", here, "--phase=probe", "--budget=64", f"--queue={QUEUE}")
    assert wrong.returncode == 6, wrong.stderr
    assert "need work queue default" in wrong.stderr


def test_a_reader_sees_what_runs_elsewhere_as_no_conflict(hosts: Hosts, tmp_path: Path) -> None:
    prefect, experiment = hosts.prefect, hosts.prefect.fresh_experiment()
    hosts.other.script(outcomes=["close:20"])
    reader = make_prefect_checkout(tmp_path / "laptop")
    laptop = {name: "" for name in reader.environment if "ROOT" in name}
    prefect.approve(_sent(hosts, experiment, f"--queue={QUEUE}"))
    run = prefect.wait(prefect.phase(experiment))
    assert run.state_name == "Completed"
    shown = hosts.call("status", experiment, "--json", folder=reader.folder, **laptop)
    assert shown.returncode == 0, shown.stderr
    [one] = json.loads(shown.stdout)["experiments"]
    assert (one["conflicts"], one["approval_conflicts"]) == ([], [])
    assert [(each["phase"], each["queue"]) for each in one["elsewhere"]] == [("probe", QUEUE)]
    assert one["next"]["command"] is None
    assert f"fitladder lineage pull {experiment}" in one["next"]["barred"]
    shown = hosts.call("status", experiment, "--json")
    [there] = json.loads(shown.stdout)["experiments"]
    assert (there["conflicts"], there["elsewhere"], there["next"]["barred"]) == ([], [], None)


def test_a_checkout_that_binds_otherwise_is_refused_before_anybody_is_asked(hosts: Hosts) -> None:
    experiment = hosts.prefect.fresh_experiment()
    document = json.loads(json.dumps(hosts.other.document))
    section = hosts.other.document["experiments"][experiment]
    section["sampling"] = {**section["sampling"], "temperature": section["sampling"]["temperature"] + 0.125}
    hosts.other.register()
    try:
        done = hosts.call("launch", experiment, "--phase=probe", "--budget=64")  # to the first host
    finally:
        hosts.other.document.update(document)
        hosts.other.register()
    assert done.returncode == 3, done.stderr
    assert "the requester's checkout is not this host's" in done.stderr
    chain = chain_path(hosts.prefect.checkout.workspace().approvals, experiment)
    assert load_chain(chain, experiment) == ()


def test_a_second_device_raises_its_host_s_limit_once_and_a_raised_one_stays(hosts: Hosts) -> None:
    api = hosts.prefect.api

    def limit(path: str) -> int:
        return int(api.read(f"/work_pools/{GPU_POOL}{path}")["concurrency_limit"])

    before = limit("")
    for device in ("gpu-0", "gpu-1", "gpu-1"):
        ensure_device(api, "third", device)
    assert (limit("/queues/third"), limit("")) == (2, before + 2)
    assert (
        api.request("PATCH", f"/work_pools/{GPU_POOL}/queues/third", {"concurrency_limit": 3}).status == 204
    )
    ensure_device(api, "third")
    ensure_device(api)
    assert (limit("/queues/third"), limit("")) == (3, before + 3)


def test_each_host_has_a_window_of_its_own(hosts: Hosts) -> None:
    own = hosts.prefect.api.read(f"/deployments/name/scheduled-phase/scheduled-phase-{QUEUE}")
    first = hosts.prefect.api.read("/deployments/name/scheduled-phase/scheduled-phase")
    assert (own["work_queue_name"], first["work_queue_name"]) == (QUEUE, "default")
    assert [one["schedule"] for one in own["schedules"]] == [one["schedule"] for one in first["schedules"]]
    assert own["entrypoint"] == first["entrypoint"] == "flows/phase.py:scheduled_phase"
    due = hosts.prefect.tick(after_s=0.0, deployment=f"scheduled-phase-{QUEUE}")
    assert hosts.prefect.wait(due).state_name == "Idle"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("agent",), 12, "work queue default of http"),
        (("agent", "--cpu"), 12, "belongs to another checkout"),
        (("agent", "--queue=a/b"), 2, "the name of a work queue"),
        (
            ("launch", "copy_00", "--phase=probe", "--budget=64", "--queue=nowhere"),
            12,
            "no host serves work queue",
        ),
        (("server", "--host=0.0.0.0"), 2, "which others reach, and no auth string"),
    ],
)
def test_what_would_split_or_expose_a_server_is_refused(
    hosts: Hosts, words: tuple[str, ...], code: int, said: str
) -> None:
    done = hosts.call(*words)
    assert (done.returncode, len(done.stderr.splitlines())) == (code, 1), done.stderr
    assert said in done.stderr
