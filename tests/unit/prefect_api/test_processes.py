"""Children that a program starts hear it, whatever its shell did to it, and all end when they are told to."""

import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fitladder.errors import EnvironmentNotReady, FitladderError, UsageError
from fitladder.prefect_api.client import PrefectApi
from fitladder.prefect_api.processes import (
    PREFECT_VERSION,
    Child,
    end_all,
    free_port,
    start,
    start_server,
    worker_environment,
)
from fitladder.workspace import Workspace

# As Prefect's worker does: SIGTERM becomes a SIGINT for itself, and only that one ends it.
WORKER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
print("ready", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(float(sys.argv[1]))
    sys.exit(7)
"""


@pytest.fixture
def deaf() -> Iterator[None]:
    """SIGINT is ignored, as in a background job of a shell."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def worker(folder: Path, name: str, takes_s: float = 0.0) -> Child:
    log = folder / f"{name}.log"
    child = start(name, [sys.executable, "-c", WORKER, str(takes_s)], {}, log, folder)
    deadline = time.monotonic() + 20
    while "ready" not in log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return child


@pytest.mark.usefixtures("deaf")
def test_a_worker_started_in_the_background_ends_when_it_is_told_to(tmp_path: Path) -> None:
    child = worker(tmp_path, "one")
    child.end(10.0)
    assert child.process.returncode == 7
    child.end(10.0)


def test_several_end_at_once_and_what_does_not_is_killed(tmp_path: Path) -> None:
    children = [worker(tmp_path, f"n{number}", takes_s) for number, takes_s in enumerate((0.4, 0.4, 60.0))]
    began = time.monotonic()
    end_all(children, 1.2)
    assert [child.process.returncode for child in children] == [7, 7, -signal.SIGKILL]
    assert 1.2 <= time.monotonic() - began < 4.0


def test_a_taken_port_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        with pytest.raises(EnvironmentNotReady, match="is taken"):
            start_server(Workspace(tmp_path, {}), tmp_path, holder.getsockname()[1])
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("port", "host", "kind", "message"),
    [
        (65_536, "127.0.0.1", UsageError, "port: got 65536, need 1 to 65535"),
        (0, "127.0.0.1", UsageError, "port: got 0"),
        (4200, "192.0.2.1", EnvironmentNotReady, "no server can listen at 192.0.2.1"),
    ],
)
def test_a_place_that_is_none(
    tmp_path: Path, port: int, host: str, kind: type[FitladderError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        start_server(Workspace(tmp_path, {}), tmp_path, port, host=host)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("version", ["3.9.0", "3.9.2", "3.10.0"])
def test_another_prefect_than_the_mended_one_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    installed = tmp_path / "site" / f"prefect-{version}.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: prefect\nVersion: {version}\n")
    monkeypatch.syspath_prepend(installed.parent)
    home = tmp_path / "home"
    with pytest.raises(EnvironmentNotReady, match=f"one version of Prefect: got {version}, need 3.9.1; "):
        start_server(Workspace(tmp_path, {}), home, free_port())
    assert not home.exists()


def test_the_mended_prefect_is_the_one_that_is_locked() -> None:
    pins = (Path(__file__).parents[3] / "locks" / "orchestrate.txt").read_text()
    assert re.findall(r"(?m)^prefect==(\S+)", pins) == [PREFECT_VERSION]


def test_an_agent_polls_every_five_seconds_unless_its_environment_says_otherwise(tmp_path: Path) -> None:
    api, name = PrefectApi("http://127.0.0.1:4200/api"), "PREFECT_WORKER_QUERY_SECONDS"
    assert worker_environment(Workspace(tmp_path, {}), api, work_pool="a")[name] == "5"
    assert worker_environment(Workspace(tmp_path, {}), api, work_pool="a", poll_s=1)[name] == "1"
    assert worker_environment(Workspace(tmp_path, {name: "9"}), api, work_pool="a", poll_s=1)[name] == "9"
