"""One file is whole or absent, and nothing can stand in for it."""

import hashlib
import os
from pathlib import Path

import pytest

from fitladder.errors import BundleError, BundleTampered, LineageError, UsageError
from fitladder.files.atomic import (
    make_folder,
    read_plain,
    replace_file,
    write_new,
    write_output,
    write_output_folder,
)
from fitladder.files.file_record import FileRecord, file_record_at, file_record_of


def test_a_new_file_is_written_once_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_new(path, b"first")
    with pytest.raises(BundleError, match=r"a\.json exists"):
        write_new(path, b"second")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["a.json"]
    assert path.stat().st_nlink == 1


def test_a_rest_of_an_interrupted_write_is_named(tmp_path: Path) -> None:
    (tmp_path / ".a.json.tmp").write_bytes(b"fir")
    with pytest.raises(BundleError, match=r"\.a\.json\.tmp exists"):
        write_new(tmp_path / "a.json", b"first")
    assert (tmp_path / ".a.json.tmp").read_bytes() == b"fir"


def test_a_symbolic_link_at_the_new_name_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BundleError, match="exists"):
        write_new(tmp_path / "a.json", b"first")
    assert not (tmp_path / "elsewhere").exists()


def test_replacing_leaves_no_rest(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for content in (b"first", b"second"):
        replace_file(path, content)
        assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BundleError, match="No space left"):
        write_new(tmp_path / "a.json", b"first")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["missing", "symlink", "dangling", "hardlink", "folder", "pipe"])
def test_only_a_plain_file_with_one_name_is_read(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "a.json", tmp_path / "b.json"
    other.write_bytes(b"x")
    match kind:
        case "symlink":
            path.symlink_to(other)
        case "dangling":
            path.symlink_to(tmp_path / "nowhere")
        case "hardlink":
            path.hardlink_to(other)
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
    with pytest.raises(BundleTampered, match=r"a\.json"):
        read_plain(path)


def test_a_file_beyond_the_limit_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_plain(tmp_path / "a", max_bytes=5) == b"12345"
    with pytest.raises(BundleTampered, match="5 bytes, need at most 4"):
        read_plain(tmp_path / "a", max_bytes=4)


def test_a_link_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    make_folder(tmp_path / "real")
    with pytest.raises(BundleTampered, match="a symbolic link, need a folder"):
        make_folder(tmp_path / "link")


def test_an_output_follows_an_interrupted_write_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.json"
    path.parent.mkdir()
    path.with_name(".a.json.tmp").write_bytes(b"torn")
    for content in (b"first", b"second"):
        write_output(path, content)
        assert path.read_bytes() == content
    assert os.listdir(path.parent) == ["a.json"]


def test_an_output_folder_follows_an_interrupted_write_of_itself(tmp_path: Path) -> None:
    (tmp_path / ".out.tmp").mkdir()
    (tmp_path / ".out.tmp" / "torn.json").write_bytes(b"to")
    write_output_folder(tmp_path / "out", {"a.json": b"1"})
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.json", "out"]


def test_an_output_never_takes_the_place_of_a_folder_or_pipe(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, got in (("folder", "a folder"), ("pipe", "a pipe")):
        with pytest.raises(UsageError, match=f"{name}: got {got}"):
            write_output(tmp_path / name, b"x", error=UsageError)
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_a_write_below_a_file_is_refused_with_the_error_of_the_caller(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(BundleError, match="cannot be written"):
        write_new(tmp_path / "file" / "a.json", b"")
    with pytest.raises(LineageError, match="cannot be written"):
        write_output(tmp_path / "file" / "a.json", b"")


def test_the_record_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    path, data = tmp_path / "a", bytes(range(256)) * 5000
    path.write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    assert file_record_at(path) == file_record_of(data) == FileRecord(bytes=len(data), sha256=sha256)
    (tmp_path / "b").hardlink_to(path)
    assert file_record_at(path, hard_links=True).sha256 == sha256
    with pytest.raises(BundleTampered, match="2 names for one file"):
        file_record_at(path)
