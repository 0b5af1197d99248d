"""One lock, one holder, always named; no lock to be had means no."""

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fitladder.canonical import canonical_bytes
from fitladder.errors import RootBusy
from fitladder.files.lock import Holder, hold_lock, this_holder

HOLD = """
import sys
from pathlib import Path
from fitladder.files.lock import hold_lock
from fitladder.errors import RootBusy
try:
    with hold_lock(Path(sys.argv[1]), "generation", flow_run_id=sys.argv[2]):
        print("held", flush=True)
        sys.stdin.readline()
except RootBusy as busy:
    print(busy, flush=True)
"""


@contextmanager
def another_process(path: Path, run: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), run], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


def left(path: Path, **changed: Any) -> Holder:
    holder = this_holder("generation", "run-1").model_copy(update=changed)
    path.write_bytes(canonical_bytes(holder) + b"\n")
    return holder


def test_the_lock_names_its_holder_and_is_given_back_empty(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with hold_lock(path, "generation", flow_run_id="run-1") as held:
        assert json.loads(path.read_bytes())["pid"] == os.getpid()
        assert held.dead_holder is None
        held.check()
        with (
            pytest.raises(RootBusy, match=rf"pid {os.getpid()} on .*generation, flow run run-1"),
            hold_lock(path, "x"),
        ):
            pass
    assert path.read_bytes() == b""
    with pytest.raises(RootBusy, match="held no more"):
        held.check()
    with hold_lock(path, "again"):
        pass


def test_it_is_given_back_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), hold_lock(tmp_path / ".lock", "x"):
        raise ZeroDivisionError
    with hold_lock(tmp_path / ".lock", "y") as held:
        assert held.dead_holder is None


def test_a_live_process_holds_it_and_a_killed_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with another_process(path, "run-1") as (process, line):
        assert line == "held"
        with pytest.raises(RootBusy, match=rf"pid {process.pid} .*flow run run-1"), hold_lock(path, "second"):
            pass
        with another_process(path, "run-2") as (_, second):
            assert f"pid {process.pid} " in second
        process.kill()
        process.wait()
        with hold_lock(path, "third") as held:
            assert held.dead_holder is not None
            assert (held.dead_holder.pid, held.dead_holder.flow_run_id) == (process.pid, "run-1")


def test_twelve_threads_one_holder(tmp_path: Path) -> None:
    path, barrier, decided = tmp_path / ".lock", threading.Barrier(12), threading.Barrier(12)
    outcomes: list[str] = []

    def try_it(number: int) -> None:
        barrier.wait()
        try:
            with hold_lock(path, f"thread {number}"):
                outcomes.append("held")
                decided.wait()
        except RootBusy as busy:
            outcomes.append(str(busy))
            decided.wait()

    threads = [threading.Thread(target=try_it, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert outcomes.count("held") == 1
    refused = [outcome for outcome in outcomes if outcome != "held"]
    assert len(refused) == 11
    assert all(f"pid {os.getpid()} on" in outcome for outcome in refused)


def test_dead_pid_999999_of_this_host_is_followed_and_named(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    left(path, pid=999_999, started_ticks=1)
    with hold_lock(path, "next") as held:
        assert held.dead_holder is not None
        assert held.dead_holder.pid == 999_999


def test_a_recycled_process_id_is_not_the_holder(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    left(path, started_ticks=1)  # this very pid, started at another time
    with hold_lock(path, "next") as held:
        assert held.dead_holder is not None


def test_a_process_of_an_earlier_boot_is_dead_whatever_its_pid(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    left(path, boot_id="00000000-0000-0000-0000-000000000000")
    with hold_lock(path, "next") as held:
        assert held.dead_holder is not None


def test_a_live_process_named_in_a_free_lock_is_respected(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    left(path)
    before = path.read_bytes()
    with pytest.raises(RootBusy, match="live process"), hold_lock(path, "next"):
        pass
    assert path.read_bytes() == before


def test_a_foreign_hosts_lock_is_never_removed(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    left(path, host="gpu-host-7", pid=999_999)
    before, inode = path.read_bytes(), path.stat().st_ino
    for _ in range(2):
        with (
            pytest.raises(RootBusy, match=r"another host.*pid 999999 on gpu-host-7.*by hand"),
            hold_lock(path, "x"),
        ):
            pass
    assert (path.read_bytes(), path.stat().st_ino) == (before, inode)


@pytest.mark.parametrize(
    "text", [b"garbage", b"{}", b'{"pid":1}{"pid":2}', b"\xff\xfe", b"\0" * 64, b"{" * 9000]
)
def test_a_garbled_lock_is_refused_as_it_stands(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / ".lock"
    path.write_bytes(text)
    with pytest.raises(RootBusy, match=r"\.lock"), hold_lock(path, "x"):
        pass
    assert path.read_bytes() == text


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EIO, errno.ENOTSUP, errno.EINTR])
def test_a_lock_that_cannot_be_had_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def broken(_: int, __: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", broken)
    with pytest.raises(RootBusy, match="no lock can be had"), hold_lock(tmp_path / ".lock", "x"):
        pytest.fail("held without a lock")


@pytest.mark.parametrize("kind", ["link", "folder", "no parent"])
def test_a_lock_that_is_no_plain_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ".lock"
    if kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        path.mkdir()
    else:
        path = tmp_path / "missing" / ".lock"
    with pytest.raises(RootBusy, match="no lock can be had"), hold_lock(path, "x"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_file_exchanged_under_its_holder_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with hold_lock(path, "first") as held:
        path.unlink()
        with pytest.raises(RootBusy, match="is gone"):
            held.check()
        with hold_lock(path, "second"), pytest.raises(RootBusy, match="held no more"):
            held.check()
