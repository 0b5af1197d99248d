"""The digest of many files, by the scheme of the registered history."""

import hashlib
from pathlib import Path

import pytest

from fitladder.errors import BundleError, BundleTampered, InputRefused
from fitladder.files.file_record import FileRecord
from fitladder.files.tree_digest import folder_tree, tree_of, tree_sha256


def record(content: bytes) -> FileRecord:
    return FileRecord(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


def test_the_scheme_by_hand() -> None:
    files = {"b/c.txt": record(b"two"), "a.txt": record(b"one"), "b.txt": record(b"three")}
    lines = b"".join(
        path.encode() + b"\0" + files[path].sha256.encode() + b"\n" for path in ("a.txt", "b.txt", "b/c.txt")
    )
    tree = tree_of(files)
    assert (tree.files, tree.bytes, tree.sha256) == (3, 11, hashlib.sha256(lines).hexdigest())
    assert tree_of({}).sha256 == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize("path", ["/a", "../a", "a/../b", "a\nb", "a\0b", "./a", "a//b", "a\ud835"])
def test_paths_that_no_tree_can_hold(path: str) -> None:
    with pytest.raises(BundleError, match="no tree can hold"):
        tree_of({path: record(b"")})


def test_a_folder_counts_hidden_files_and_refuses_links(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "x").write_bytes(b"one")
    (tmp_path / ".hidden").write_bytes(b"two")
    assert folder_tree(tmp_path) == tree_of({"deep/er/x": record(b"one"), ".hidden": record(b"two")})
    assert tree_sha256(tmp_path) == folder_tree(tmp_path).sha256
    (tmp_path / "deep" / "link").symlink_to(tmp_path / ".hidden")
    with pytest.raises(InputRefused, match="deep/link"):
        tree_sha256(tmp_path, error=InputRefused)
    with pytest.raises(BundleTampered, match="nowhere"):
        tree_sha256(tmp_path / "nowhere")
