"""Entries of dead dvc processes go, those of living ones stay; a torn list is the work of a dead writer."""

import json
import os
from pathlib import Path

import pytest

from fitladder.dvc_api import stale_rwlock
from fitladder.dvc_api.stale_rwlock import RWLOCK, clear_stale_rwlock

DVC = b"python\0/x/bin/dvc\0repro\0"


@pytest.fixture
def rwlock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(stale_rwlock, "PATIENCE_S", 0.1)
    path = tmp_path / RWLOCK
    path.parent.mkdir(parents=True)
    return path


def _process(tmp_path: Path, pid: int, state: str = "S", words: bytes = DVC) -> Path:
    folder = tmp_path / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} (a dvc) {state} 1 2 3")
    (folder / "cmdline").write_bytes(words)
    return folder.parent


def _listed(*pids: int) -> str:
    users = [{"pid": pid, "cmd": "dvc repro"} for pid in pids]
    return json.dumps({"read": {"dvc.yaml": users[1:]}, "write": {"data/x": users[0]}})


@pytest.mark.parametrize(
    ("state", "words", "is_cleared"),
    [
        ("S", DVC, False),
        ("R", b"python\0/x/bin/dvc\0push\0", False),
        ("Z", b"", True),
        ("S", b"sshd\0", True),
    ],
)
def test_only_a_living_dvc_holds_a_path(
    tmp_path: Path, rwlock: Path, state: str, words: bytes, is_cleared: bool
) -> None:
    rwlock.write_text(_listed(41))
    proc = _process(tmp_path, 41, state, words)
    assert clear_stale_rwlock(tmp_path, proc) is is_cleared
    assert rwlock.exists() is not is_cleared


def test_one_living_user_keeps_the_whole_list(tmp_path: Path, rwlock: Path) -> None:
    rwlock.write_text(_listed(999_998, 41))
    assert not clear_stale_rwlock(tmp_path, _process(tmp_path, 41))
    assert rwlock.is_file()


@pytest.mark.parametrize("torn", ["", '{"read": {', "[]", '{"write": {"x": {"cmd": "dvc"}}}'])
def test_a_torn_list_is_cleared_after_a_while(tmp_path: Path, rwlock: Path, torn: str) -> None:
    rwlock.write_text(torn)
    assert clear_stale_rwlock(tmp_path, _process(tmp_path, 41))
    assert not rwlock.exists()


def test_nothing_is_cleared_where_nothing_can_be_known(tmp_path: Path, rwlock: Path) -> None:
    rwlock.write_text(_listed(os.getpid()))
    assert not clear_stale_rwlock(tmp_path, tmp_path / "no_proc")
    assert not clear_stale_rwlock(tmp_path / "elsewhere")
