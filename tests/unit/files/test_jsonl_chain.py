"""Writers of one chain take turns, and one that waits in vain says so."""

import threading
import time
from pathlib import Path

import pytest

from fitladder.errors import GoRefused
from fitladder.files import jsonl_chain


def test_a_chain_that_stays_locked_is_refused_with_the_error_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl_chain, "LOCK_PATIENCE_S", 0.1)
    path = tmp_path / "deep" / "chain.jsonl"
    with (
        jsonl_chain.locked(path, GoRefused),
        pytest.raises(GoRefused, match="stayed locked"),
        jsonl_chain.locked(path, GoRefused),
    ):
        pytest.fail("two writers")


def test_writers_take_turns_and_append(tmp_path: Path) -> None:
    path = tmp_path / "chain.jsonl"

    def write(line: bytes) -> None:
        with jsonl_chain.locked(path, GoRefused) as descriptor:
            before = path.read_bytes()
            time.sleep(0.02)
            assert path.read_bytes() == before
            jsonl_chain.append_bytes(descriptor, path, line, GoRefused)

    threads = [threading.Thread(target=write, args=(b"%d\n" % number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.read_bytes().split()) == [b"%d" % number for number in range(6)]
