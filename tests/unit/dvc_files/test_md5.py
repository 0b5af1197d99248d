"""Digests as DVC makes them, from raw bytes; nothing that points elsewhere has one."""

import os
from pathlib import Path

import pytest

from fitladder.dvc_files.md5 import differs_in_line_ends, folder_md5s, listing_md5, raw_md5
from fitladder.errors import LineageError

LF, CRLF = b'{"id":1}\n{"id":2}\n', b'{"id":1}\r\n{"id":2}\r\n'
MD5_LF, MD5_CRLF = "85f2e4a34d2fe5bfff64eefabbb242a0", "363729ce0f5e9a7446e4e36ad8670149"


def test_line_ends_have_digests_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(LF)
    assert raw_md5(path) == MD5_LF
    path.write_bytes(CRLF)
    assert raw_md5(path) == MD5_CRLF
    assert differs_in_line_ends(path, MD5_LF)
    path.write_bytes(CRLF.replace(b"1", b"3"))
    assert not differs_in_line_ends(path, MD5_LF)


def test_same_size_and_time_do_not_hide_a_flipped_byte(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(LF)
    before, status = raw_md5(path), path.stat()
    path.write_bytes(LF.replace(b"1", b"7"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert raw_md5(path) != before


def test_a_folder_has_the_digest_of_dvcs_listing(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.json").write_bytes(CRLF)
    (tmp_path / "one.json").write_bytes(LF)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_bytes(b"")
    assert folder_md5s(tmp_path) == {"one.json": MD5_LF, "b/two.json": MD5_CRLF}
    assert raw_md5(tmp_path) == listing_md5({"one.json": MD5_LF, "b/two.json": MD5_CRLF})
    assert listing_md5({}) == "d751713988987e9331980363e24189ce.dir"  # DVC's own for an empty folder


@pytest.mark.parametrize("target", ["nowhere", "one.json", "/etc/hostname"])
def test_links_have_no_digest(tmp_path: Path, target: str) -> None:
    (tmp_path / "one.json").write_bytes(LF)
    (tmp_path / "link.json").symlink_to(target)
    with pytest.raises(LineageError, match=r"link\.json: got a (dangling )?link to"):
        raw_md5(tmp_path)


def test_a_pipe_or_nothing_has_no_digest(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LineageError, match="pipe is missing: got no plain file"):
        raw_md5(tmp_path / "pipe")
    with pytest.raises(LineageError, match="absent is missing: got nothing"):
        raw_md5(tmp_path / "absent")
