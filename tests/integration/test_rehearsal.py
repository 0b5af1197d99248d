"""`python -m flows.rehearsal`: what it refuses before it starts anything, and how it ends when it is ended.

The whole life with the real engine is `make demo` itself.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.approvals import approve, key_of, run_whole_phase
from support.checkout import EXPERIMENT, REJECTED, ROOT, ScriptedCheckout, make_scripted_checkout
from support.prefect_server import OWNER, PrefectServer

from fitladder.evidence.load import load_evidence


def rehearse(
    made: ScriptedCheckout, *words: str, environment: Mapping[str, str] | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return subprocess.run(
        [sys.executable, "-m", "flows.rehearsal", *words],
        cwd=made.folder,
        env={**plain, **(made.environment if environment is None else environment), **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def refused(done: subprocess.CompletedProcess[str], code: int, *parts: str) -> None:
    """One line on standard error, the refusing error's exit code, no server."""
    assert done.returncode == code, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for part in ("fitladder: ", *parts):
        assert part in done.stderr


@pytest.fixture
def made(tmp_path: Path) -> ScriptedCheckout:
    return make_scripted_checkout(tmp_path / "checkout", review="self")


def test_what_cannot_be_is_refused_in_one_line_before_anything_starts(
    made: ScriptedCheckout, tmp_path: Path
) -> None:
    refused(rehearse(made, "no_such_experiment"), 3, "no_such_experiment", EXPERIMENT)
    without_root = {k: v for k, v in made.environment.items() if not k.endswith("_ROOT")}
    refused(rehearse(made, EXPERIMENT, environment=without_root), 6, "SCRIPTED_EXPERIMENT_ROOT")
    without_engine = {k: v for k, v in made.environment.items() if "ENGINE" not in k}
    refused(rehearse(made, EXPERIMENT, environment=without_engine), 12, "make setup")
    independent = make_scripted_checkout(tmp_path / "independent")
    refused(rehearse(independent, EXPERIMENT, "--yes"), 8, "another person's GO")
    assert not (made.folder / ".prefect").exists()
    assert made.lines() == []


def test_a_taken_port_is_one_line(made: ScriptedCheckout) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = rehearse(made, EXPERIMENT, "--port", str(taken.getsockname()[1]))
    refused(done, 12, "is taken")


def test_a_server_that_is_not_there_is_one_line(made: ScriptedCheckout) -> None:
    done = rehearse(made, EXPERIMENT, PREFECT_API_URL="http://127.0.0.1:9/api")
    refused(done, 12, "no answer from the Prefect server", "PREFECT_API_URL")


def test_an_ended_ladder_starts_neither_server_nor_engine(made: ScriptedCheckout) -> None:
    made.script(outcomes=REJECTED)
    for number, budget in enumerate((64, 96)):
        key = key_of("probe", budget)
        run_whole_phase(made.workspace(), key, approve(made.workspace(), key, f"ask-{number}"))
    done = rehearse(made, EXPERIMENT)
    assert "every rung to 96 rejected" in done.stdout + done.stderr or "dvc" in done.stderr.lower()
    assert not (made.folder / ".prefect").exists()
    assert made.generated() == ["probe@64", "probe@96"]
    shutil.rmtree(made.root)
    restart_advice = f"fitladder new NAME --from {EXPERIMENT}"
    refused(rehearse(made, EXPERIMENT), 6, "is gone", "probe@64 was begun", restart_advice)


def test_an_experiment_that_is_over_says_so_and_is_offered_no_clean_demo(made: ScriptedCheckout) -> None:
    made.section["state"] = "terminal"
    made.register()
    done = rehearse(made, EXPERIMENT)
    refused(done, 7, "registered as terminal", f"fitladder new NAME --from {EXPERIMENT}")
    assert "a fresh probe" not in done.stderr
    assert "clean-demo" not in done.stderr


@pytest.mark.server
def test_ctrl_c_in_the_middle_of_a_generation_leaves_nothing_running(
    prefect_server: PrefectServer, tmp_path: Path
) -> None:
    prefect, experiment = prefect_server, prefect_server.fresh_experiment()
    prefect.checkout.document["experiments"][experiment]["review"] = "self"
    prefect.checkout.register()
    prefect.checkout.script(outcomes=["close:20"], delay_s=20.0)
    prefect.end_workers()  # the rehearsal brings its own
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.rehearsal", experiment],
        cwd=prefect.checkout.folder,
        env={
            **os.environ,
            **prefect.checkout.environment,
            "PREFECT_API_URL": prefect.api.url,
            "PREFECT_HOME": str(tmp_path / "home"),
            "LOGNAME": OWNER,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        prefect.generating(experiment)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate(timeout=10)
    assert process.returncode == 130
    assert errors.splitlines() == [
        "fitladder: interrupted; server, workers and engine are put away; run it again to go on"
    ]
    deadline = time.monotonic() + 20
    while left := [*prefect.engines(), *_workers(str(tmp_path / "home"))]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    assert prefect.on_disk(experiment) == ["preflight.json"]
    assert load_evidence(prefect.checkout.workspace(), experiment).next.resumable == key_of(
        "probe", 64, experiment
    )
    assert prefect.generated(experiment) == ["probe@64"]
    prefect.settle()


def _workers(home: str) -> list[int]:
    """Processes that were started with this PREFECT_HOME and are alive."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"PREFECT_HOME={home}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_the_makefile_runs_this_very_module() -> None:
    assert "-m flows.rehearsal" in (ROOT / "Makefile").read_text()
