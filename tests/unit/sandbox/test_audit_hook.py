"""A content-blind pass cannot look, by whatever name or door; what it may read stays readable."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fitladder.errors import ContentSealed
from fitladder.sandbox.audit_hook import content_blind, no_new_files


@pytest.fixture
def hidden(tmp_path: Path) -> Path:
    folder = tmp_path / "sealed"
    folder.mkdir()
    (folder / "hidden.json").write_text('{"answer":42}')
    (tmp_path / "open.txt").write_text("anybody may read this")
    (tmp_path / "symlink").symlink_to(folder / "hidden.json")
    (tmp_path / "folder").symlink_to(folder)
    os.link(folder / "hidden.json", tmp_path / "hardlink")
    return folder / "hidden.json"


def _read(path: str | bytes | Path, mode: str = "rb", opener: Any = None) -> object:
    with open(path, mode, opener=opener) as stream:
        return stream.read()


def _by_descriptor(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.open(path.name, os.O_RDONLY, dir_fd=folder)
    finally:
        os.close(folder)


def _by_opener(path: Path) -> None:
    folder = os.open(path.parent.parent, os.O_RDONLY)
    try:
        _read("hardlink", opener=lambda name, flags: os.open(name, flags, dir_fd=folder))
    finally:
        os.close(folder)


def _in_a_thread(path: Path) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            path.read_bytes()
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise failures[0]


DOORS: dict[str, Callable[[Path], object]] = {
    "open": _read,
    "bytes": lambda path: _read(os.fsencode(path)),
    "read_bytes": lambda path: path.read_bytes(),
    "for writing": lambda path: _read(path, "r+"),
    "dots": lambda path: _read(f"{path.parent}/../sealed/./hidden.json"),
    "os.open": lambda path: os.open(path, os.O_RDONLY),
    "symlink": lambda path: _read(path.parent.parent / "symlink"),
    "symlinked folder": lambda path: _read(path.parent.parent / "folder" / "hidden.json"),
    "hardlink": lambda path: _read(path.parent.parent / "hardlink"),
    "/proc": lambda path: _read(f"/proc/self/root{path}"),
    "dir_fd": _by_descriptor,
    "opener": _by_opener,
    "thread": _in_a_thread,
    "numpy": lambda path: np.fromfile(path, dtype=np.uint8),
    "sqlite": sqlite3.connect,
    "subprocess": lambda path: subprocess.run(["cat", str(path)], check=True),
    "system": lambda path: os.system(f"cat {path}"),
    "posix_spawn": lambda path: os.posix_spawn("/bin/cat", ["cat", str(path)], {}),
    "fork": lambda path: os.fork(),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("sealed", ["file", "folder"])
def test_no_door_leads_to_sealed_content(hidden: Path, door: str, sealed: str) -> None:
    target = hidden if sealed == "file" else hidden.parent
    with pytest.raises(ContentSealed, match="while a content-blind pass runs"), content_blind([target]):
        DOORS[door](hidden)
    assert hidden.read_text() == '{"answer":42}'  # afterwards the file is as open as before


@pytest.mark.parametrize("door", ["open", "os.open", "numpy", "subprocess"])
def test_a_swallowed_refusal_is_raised_at_the_end(hidden: Path, door: str) -> None:
    with (
        pytest.raises(ContentSealed, match="counts for nothing"),
        content_blind([hidden]),
        contextlib.suppress(ContentSealed),
    ):
        DOORS[door](hidden)


def test_what_is_not_sealed_stays_readable(
    hidden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with content_blind([hidden]):
        assert (tmp_path / "open.txt").read_text() == Path("open.txt").read_text()
        (tmp_path / "new.txt").write_text("written")
        assert "hidden.json" in os.listdir(hidden.parent)  # that it exists is no secret


def test_text_cannot_be_decoded_during_the_pass(tmp_path: Path) -> None:
    later = tmp_path / "text" / "decoded.jsonl"
    with content_blind([later.parent]):
        later.parent.mkdir()
    with pytest.raises(ContentSealed, match="while a content-blind"), content_blind([later.parent]):
        later.write_text("a word")
    assert not later.exists()


def test_a_broken_link_hides_nothing_behind_it(hidden: Path, tmp_path: Path) -> None:
    (hidden.parent / "a_broken_link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ContentSealed, match="while a content-blind"), content_blind([hidden.parent]):
        _read(tmp_path / "hardlink")


def test_a_descriptor_from_before_is_refused(hidden: Path) -> None:
    with hidden.open("rb"), pytest.raises(ContentSealed, match="already open"), content_blind([hidden]):
        pass


def test_nested_passes_end_one_by_one(hidden: Path, tmp_path: Path) -> None:
    with content_blind([hidden]):
        with content_blind([tmp_path / "open.txt"]):
            pass
        assert (tmp_path / "open.txt").read_text()
    with contextlib.ExitStack() as outer:
        outer.enter_context(pytest.raises(ContentSealed, match="while a content-blind"))
        outer.enter_context(content_blind([hidden]))
        with content_blind([tmp_path / "open.txt"]):
            pass
        hidden.read_text()


FRESH = """
import sys
from pathlib import Path
from fitladder.sandbox.audit_hook import content_blind
from fitladder.errors import ContentSealed
try:
    with content_blind([Path(sys.argv[1])]):
        {line}
except ContentSealed as refusal:
    print(refusal)
"""


@pytest.mark.parametrize(
    "line", ["import tokenizers", "import transformers.models", "import ctypes", "import _ctypes"]
)
def test_no_decoder_and_no_ctypes_is_imported(hidden: Path, line: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FRESH.format(line=line), str(hidden)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "got import" in done.stdout


def test_ctypes_that_is_there_already_is_of_no_use(hidden: Path) -> None:
    code = FRESH.format(line="ctypes.CDLL(None).open").replace("import sys", "import ctypes, sys")
    done = subprocess.run(
        [sys.executable, "-c", code, str(hidden)], capture_output=True, text=True, check=True
    )
    assert "got ctypes.dlopen" in done.stdout


def test_pyarrow_opens_nothing_by_itself_while_no_file_may_be_opened(tmp_path: Path) -> None:
    """The hook sees no C++ open; the kernel's limit does."""
    path = tmp_path / "ids.parquet"
    pq.write_table(pa.table({"ids": [1, 2, 3]}), path)
    data = path.read_bytes()
    for door in (lambda: pq.read_table(path), lambda: pa.OSFile(str(path)), lambda: pa.memory_map(str(path))):
        with pytest.raises(ContentSealed, match="tried to open a file"), no_new_files():
            door()
    with no_new_files():
        table = pq.ParquetFile(pa.BufferReader(data)).read()
    assert table.column("ids").to_pylist() == [1, 2, 3]
    assert path.read_bytes() == data  # the limit is back


def test_the_limit_cannot_be_lifted_inside(hidden: Path) -> None:
    code = """
import resource
from fitladder.sandbox.audit_hook import content_blind, no_new_files
from fitladder.errors import ContentSealed
try:
    with content_blind([]), no_new_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
except ContentSealed as refusal:
    print(refusal)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "lifting the limit" in done.stdout


def test_limits_nest(tmp_path: Path) -> None:
    with contextlib.ExitStack() as outer:
        outer.enter_context(pytest.raises(ContentSealed, match="tried to open a file"))
        outer.enter_context(no_new_files())
        with no_new_files():
            pass
        _read(tmp_path)
    (tmp_path / "new").write_text("the limit is back")


def test_other_failures_inside_pass_through() -> None:
    with pytest.raises(FileNotFoundError), no_new_files():
        raise FileNotFoundError(2, "nothing there")
