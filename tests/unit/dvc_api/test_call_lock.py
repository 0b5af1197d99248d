"""One holder at a time; the others wait within a bound and then learn who it is."""

import errno
import fcntl
import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest

from fitladder.dvc_api.call_lock import LOCK_NAME, project_lock
from fitladder.errors import LineageError


@pytest.fixture(autouse=True)
def _checkout(tmp_path: Path) -> None:
    (tmp_path / ".dvc").mkdir()


def _count_up(folder: Path, turns: int) -> None:
    counter = folder / "counter"
    for _ in range(turns):
        with project_lock(folder, "counting", wait_s=30):
            value = int(counter.read_text())
            time.sleep(0.001)
            counter.write_text(str(value + 1))


def test_every_call_waits_for_its_turn(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("0")
    workers = [multiprocessing.Process(target=_count_up, args=(tmp_path, 5)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert (tmp_path / "counter").read_text() == "15"


def test_after_the_bound_the_holder_is_named(tmp_path: Path) -> None:
    with (
        project_lock(tmp_path, "dvc push", wait_s=0),
        pytest.raises(LineageError, match=rf"'dvc push' \(process {os.getpid()} on "),
        project_lock(tmp_path, "dvc repro", wait_s=0.2),
    ):
        pytest.fail("two holders")


def test_a_dead_holder_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / LOCK_NAME
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"host": "elsewhere", "pid": 999_999, "what": "dvc push"}))
    with project_lock(tmp_path, "dvc repro", wait_s=0):
        assert json.loads(path.read_text())["what"] == "dvc repro"
    assert json.loads(path.read_text()) == {}


def test_no_lock_to_be_had_says_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(LineageError, match="need a file system with locks"),
        project_lock(tmp_path, "x", wait_s=1),
    ):
        pytest.fail("held without a lock")


def test_a_link_in_the_locks_place_is_refused(tmp_path: Path) -> None:
    path = tmp_path / LOCK_NAME
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LineageError, match="cannot be opened"), project_lock(tmp_path, "x", wait_s=0):
        pytest.fail("followed a link")
    assert not (tmp_path / "elsewhere").exists()
