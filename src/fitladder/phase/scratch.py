"""Scratch folders of phases: the engine's request, log and rows until they are bundled.

Each folder names its owner, a process; only what a dead process of this host owns is removed, and only when
the next phase starts or somebody asks (`python -m fitladder.phase.scratch FOLDER`). Nothing counts as done.
"""

import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path

from fitladder.canonical import canonical_bytes, parse_json, parse_model
from fitladder.errors import RootBusy
from fitladder.files.lock import Holder, lives_here, this_holder
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import PHASES

__all__ = ["OWNER_FILE", "engines_of", "new_scratch", "sweep", "wait_for_engines"]

OWNER_FILE = "owner.json"


def new_scratch(folder: Path, key: BundleKey, *, flow_run_id: str | None = None) -> Path:
    """A fresh folder below `folder`, owned by this process; what dead ones left there is swept first."""
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    made = Path(tempfile.mkdtemp(dir=folder, prefix=f"{key.phase}-{key.thinking_budget_tokens}-"))
    (made / OWNER_FILE).write_bytes(canonical_bytes(this_holder(f"phase {key}", flow_run_id)))
    return made


def sweep(folder: Path, *, ownerless: bool = False) -> tuple[Path, ...]:
    """Remove what dead processes of this host own; returns what was removed.

    `ownerless`: also folders of phases that name nobody and that no engine works in.
    """
    removed = []
    for path in sorted(folder.glob("*-*")):
        if not path.is_dir() or path.is_symlink() or path.name.partition("-")[0] not in PHASES:
            continue
        owner = _owner(path)
        dead = ownerless if owner is None else owner.host == socket.gethostname() and not lives_here(owner)
        if dead and not engines_of(path):
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
    return tuple(removed)


def _owner(path: Path) -> Holder | None:
    where = str(path / OWNER_FILE)
    try:
        plain = parse_json((path / OWNER_FILE).read_bytes(), where=where, error=RootBusy)
        return parse_model(Holder, plain, where=where, error=RootBusy)
    except (OSError, RootBusy):
        return None


def engines_of(folder: Path) -> tuple[int, ...]:
    """Live processes whose command names a file below `folder`: its engines. None where there is no /proc."""
    wanted = f"{folder}/".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(wanted) for word in words):
            found.append(int(path.parent.name))
    return tuple(sorted(found))


def wait_for_engines(folder: Path, patience_s: float) -> tuple[int, ...]:
    """Wait until no engine works below `folder`; those that are left after `patience_s`."""
    deadline = time.monotonic() + patience_s
    while (left := engines_of(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


if __name__ == "__main__":
    sweep(Path(sys.argv[1]).absolute(), ownerless=True)
