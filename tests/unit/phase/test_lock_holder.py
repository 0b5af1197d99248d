"""Who holds a root, told from its lock file without taking it."""

import os
import socket
from pathlib import Path

import pytest

from fitladder.canonical import canonical_bytes
from fitladder.errors import RootBusy
from fitladder.files.lock import Holder, hold_lock, this_holder
from fitladder.phase.lock_holder import dead_holder, live_holder
from fitladder.records.layout import LOCK


def left(root: Path, **changes: object) -> Holder:
    """A lock whose holder never gave it back."""
    holder = this_holder("phase probe", "run-1").model_copy(update=changes)
    (root / LOCK).write_bytes(canonical_bytes(holder) + b"\n")
    return holder


def test_nobody_holds_a_root_without_a_lock_or_with_one_given_back(tmp_path: Path) -> None:
    assert (live_holder(tmp_path), dead_holder(tmp_path)) == (None, None)
    with hold_lock(tmp_path / LOCK, "a test") as held:
        assert (live_holder(tmp_path), dead_holder(tmp_path)) == (held.holder, None)
    assert (live_holder(tmp_path), dead_holder(tmp_path)) == (None, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"pid": 999_999_999},
        {"started_ticks": 1},  # the number is somebody else's by now
        {"boot_id": "another boot"},
    ],
)
def test_a_dead_holder_is_named(tmp_path: Path, changes: dict[str, object]) -> None:
    holder = left(tmp_path, **changes)
    assert (live_holder(tmp_path), dead_holder(tmp_path)) == (None, holder)
    assert "flow run run-1" in str(holder)


def test_another_host_s_holder_is_neither(tmp_path: Path) -> None:
    left(tmp_path, host=f"not-{socket.gethostname()}", pid=os.getpid())
    assert (live_holder(tmp_path), dead_holder(tmp_path)) == (None, None)


def test_a_lock_nobody_can_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("somebody")
    with pytest.raises(RootBusy, match="lock"):
        live_holder(tmp_path)
