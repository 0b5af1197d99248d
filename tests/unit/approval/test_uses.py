"""The record of used GOs: once each, in one root, whole or refused."""

import multiprocessing
from pathlib import Path

import pytest

from fitladder.approval.uses import check_unused, load_uses, record_use, uses_path
from fitladder.canonical import sha256_bytes
from fitladder.errors import GoRefused
from fitladder.records.bundle_key import BundleKey

ID = "some_experiment"
KEY = BundleKey(experiment_id=ID, thinking_budget_tokens=64, phase="probe")
ROOT, GO = sha256_bytes(b"root"), sha256_bytes(b"GO")


def use(path: Path, go: str = GO, root: str = ROOT) -> None:
    record_use(path, KEY, go_sha256=go, root_id=root)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return uses_path(tmp_path / "approvals", ID)


def test_a_go_is_used_once_and_in_the_root_of_the_first(path: Path) -> None:
    assert load_uses(path, ID) == ()
    use(path)
    other = sha256_bytes(b"other")
    with pytest.raises(GoRefused, match=rf"used already: got {GO} in root {ROOT}, need"):
        use(path)
    with pytest.raises(GoRefused, match=rf"begun in another root: got root id {other}, need {ROOT}"):
        use(path, go=other, root=other)
    use(path, go=other)
    assert [one.go_sha256 for one in load_uses(path, ID)] == [GO, other]
    check_unused(load_uses(path, ID), sha256_bytes(b"third"), ROOT)


def test_every_changed_byte_is_noticed(path: Path) -> None:
    use(path)
    use(path, go=sha256_bytes(b"second"))
    data = path.read_bytes()
    last = data.rindex(b"\n", 0, -1)
    for at in [*range(0, last, 7), len(data) - 1]:
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(GoRefused):
            load_uses(path, ID)
    path.write_bytes(data[:-9])
    with pytest.raises(GoRefused, match="torn last line"):
        use(path, go=sha256_bytes(b"third"))


def _try(path: str) -> bool:
    try:
        use(Path(path))
    except GoRefused:
        return False
    return True


def test_of_several_processes_one_uses_the_go(path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert sorted(pool.map(_try, [str(path)] * 4)) == [False, False, False, True]
    assert len(load_uses(path, ID)) == 1
