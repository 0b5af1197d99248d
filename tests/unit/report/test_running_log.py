"""The running log: appended to, chained, never changed."""

import json
import threading
from pathlib import Path

import pytest

from fitladder.errors import LineageError, UsageError
from fitladder.report.running_log import append_log, load_log, log_path

ID = "an_experiment"
NOW = "2026-01-02T03:04:05Z"


def write(data: Path, text: str = "something happened") -> None:
    append_log(data, ID, text, author="ada", recorded=NOW)


def test_lines_are_kept_in_order_and_chained(tmp_path: Path) -> None:
    assert load_log(tmp_path, ID) == ()
    for text in ("first", "second, with | and <b>", "broken \ud835 text"):
        write(tmp_path, text)
    lines = load_log(tmp_path, ID)
    assert [(line.sequence, line.text) for line in lines] == [
        (1, "first"),
        (2, "second, with | and <b>"),
        (3, r"broken \u{d835} text"),
    ]
    raw = [json.loads(line) for line in log_path(tmp_path, ID).read_text().splitlines()]
    assert raw[0]["previous_sha256"] == "0" * 64
    assert [line["previous_sha256"] for line in raw[1:]] == [line.sha256 for line in lines[:2]]


@pytest.mark.parametrize("old", [b"first", b'"sequence":1', b"ada"])
def test_an_edited_line_refuses_reading_and_appending(tmp_path: Path, old: bytes) -> None:
    write(tmp_path, "first")
    write(tmp_path, "second")
    path = log_path(tmp_path, ID)
    path.write_bytes(path.read_bytes().replace(old, old[:-1] + b"9", 1))
    with pytest.raises(LineageError, match=r"jsonl line [12]: the log's chain is broken"):
        load_log(tmp_path, ID)
    before = path.read_bytes()
    with pytest.raises(LineageError):
        write(tmp_path, "third")
    assert path.read_bytes() == before


def test_a_torn_line_is_never_joined(tmp_path: Path) -> None:
    write(tmp_path, "first")
    path = log_path(tmp_path, ID)
    torn = path.read_bytes() + b'{"schema_ver'
    path.write_bytes(torn)
    with pytest.raises(LineageError, match="line 2: the log's chain is broken: got a torn last line"):
        write(tmp_path)
    assert path.read_bytes() == torn


def test_a_dropped_or_swapped_line_refuses(tmp_path: Path) -> None:
    for text in ("first", "second", "third"):
        write(tmp_path, text)
    path = log_path(tmp_path, ID)
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in ([lines[0], lines[2]], [lines[1], lines[0], lines[2]], lines[1:]):
        path.write_bytes(b"".join(kept))
        with pytest.raises(LineageError, match="chain is broken"):
            load_log(tmp_path, ID)


def test_the_log_of_another_experiment_refuses(tmp_path: Path) -> None:
    write(tmp_path)
    log_path(tmp_path, "other_one").write_bytes(log_path(tmp_path, ID).read_bytes())
    with pytest.raises(LineageError, match="experiment_id"):
        load_log(tmp_path, "other_one")


@pytest.mark.parametrize("text", ["", "   \n", "x" * 4001])
def test_no_text_and_endless_text_refuse(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="log text"):
        write(tmp_path, text)
    assert not log_path(tmp_path, ID).exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(b"")
    log_path(tmp_path, ID).parent.mkdir()
    log_path(tmp_path, ID).symlink_to(target)
    with pytest.raises(LineageError, match="cannot be opened"):
        write(tmp_path)
    assert target.read_bytes() == b""


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    threads = [threading.Thread(target=write, args=(tmp_path, f"line {n}")) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(line.text for line in load_log(tmp_path, ID)) == sorted(f"line {n}" for n in range(12))
