"""kill -9 at every step of a whole phase: what is left reads as not begun, preflight-only or complete, or is
refused; never as more than it is, and the next holder goes on from there.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import bundles as make

from fitladder.errors import BundleError, BundlePartial
from fitladder.store.held_root import hold_root
from fitladder.store.verify_root import inspect_root, verify_root
from fitladder.store.write_bundle import reconcile

# A child for each step, forked from one warm process that has used no thread: it runs the phase and is killed
# right before the n-th call that changes the disk; before an fsync, with half of the file's bytes torn off.
KILLER = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support import bundles as make
from fitladder.store.held_root import hold_root

class Steps:
    def __init__(self, last):
        self.left = last
    def wrap(self, module, name, torn=False):
        true = getattr(module, name)
        def step(*words, **named):
            if self.left == 0:
                if torn and os.readlink(f"/proc/self/fd/{words[0]}").endswith(".tmp"):
                    os.ftruncate(words[0], os.fstat(words[0]).st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)
            self.left -= 1
            return true(*words, **named)
        setattr(module, name, step)

def child(root, last):
    steps = Steps(last)
    for name in ("mkdir", "link", "unlink", "replace"):
        steps.wrap(os, name)
    steps.wrap(os, "fsync", torn=True)
    of = make.experiment()
    with hold_root(root, make.ID, "killed") as held:
        make.complete(held, make.begin(held, of, make.key()))

base = Path(sys.argv[1])
for last in range(1000):
    pid = os.fork()
    if pid == 0:
        child(base / f"{last:03d}" / "root", last)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    print(last, status, flush=True)
    if status == 0:
        break
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One root a step, each left by a process that was killed before that step; the last one is whole."""
    base = tmp_path_factory.mktemp("killed")
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(base), str(Path(__file__).parents[1])],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    statuses = [line.split() for line in done.stdout.splitlines()]
    assert {status for _, status in statuses[:-1]} == {"9"}, done.stdout + done.stderr
    assert statuses[-1][1] == "0"
    assert len(statuses) > 35  # preflight, samples, metadata, receipt and four catalogs, several steps each
    return [base / f"{int(number):03d}" / "root" for number, _ in statuses]


def left_behind(root: Path) -> str:
    """What is there by its names alone."""
    folder = root / "think_64" / "probe"
    names = set(os.listdir(folder)) if folder.is_dir() else set()
    if {"preflight.json", "samples.parquet", "engine.json", "receipt.json"} <= names:
        return "complete"
    if names - {"preflight.json", ".preflight.json.tmp"}:
        return "partial"
    return "preflight_only" if "preflight.json" in names else "nothing"


def test_no_reader_believes_more_than_is_there(killed: list[Path]) -> None:
    seen = set()
    for root in killed:
        try:
            found = verify_root(root, make.ID)
        except BundleError:
            seen.add("refused")
            continue
        states = [entry.state for entry in found.catalog.entries]
        if states == ["complete"]:
            assert left_behind(root) == "complete"
            assert len(found.bundles) == 1
        elif states == ["preflight_only"]:
            assert left_behind(root) == "preflight_only"
        else:
            assert states == []
            assert left_behind(root) == "nothing"
        seen.add("".join(states) or "empty")
    assert seen == {"refused", "empty", "preflight_only", "complete"}


def go_on(root: Path) -> str:
    """What a next holder finds, and begins where nothing was begun."""
    with hold_root(root, make.ID, "next") as held:
        if (dead := held.lock.dead_holder) is not None:
            assert dead.purpose == "killed"
        try:
            states = [entry.state for entry in reconcile(held).entries]
        except BundlePartial:
            return "partial"
        if not states:
            make.begin(held, make.experiment(), make.key())
        return states[0] if states else "nothing"


def test_the_next_holder_goes_on_or_is_told_why_not(killed: list[Path]) -> None:
    outcomes: dict[str, int] = {}
    for root in killed:
        before = left_behind(root)
        rows = {path.read_bytes() for path in root.rglob("*samples*")}
        outcome = go_on(root)
        if outcome == "partial":
            assert {path.read_bytes() for path in root.rglob("*samples*")} == rows  # no row is lost
        else:
            assert not list(root.rglob("*.tmp"))
            verified = inspect_root(root, make.ID)
            assert verified.pending_entries == ()
            assert len(verified.bundles) == (outcome == "complete")
        assert outcome == before
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    print(f"{len(killed)} steps: {outcomes}")
    assert set(outcomes) == {"nothing", "preflight_only", "partial", "complete"}
