"""What dead phases left in runs/.scratch goes; what a live one, another host or nobody we know owns stays."""

import subprocess
import sys
import time
from pathlib import Path

from support.approvals import key_of

from fitladder.canonical import canonical_bytes
from fitladder.files.lock import Holder, this_holder
from fitladder.phase.scratch import OWNER_FILE, engines_of, new_scratch, sweep, wait_for_engines

PROBE = key_of("probe", 64)


def _left(folder: Path, name: str, owner: Holder | None) -> Path:
    made = folder / name
    made.mkdir(parents=True)
    (made / "engine.log").write_text("log")
    if owner is not None:
        (made / OWNER_FILE).write_bytes(canonical_bytes(owner))
    return made


def test_only_what_dead_processes_of_this_host_own_is_swept(tmp_path: Path) -> None:
    me = this_holder("phase")
    dead = _left(tmp_path, "probe-64-dead", me.model_copy(update={"started_ticks": 1}))
    kept = [
        _left(tmp_path, "probe-64-live", me),
        _left(tmp_path, "base-64-elsewhere", me.model_copy(update={"host": "elsewhere", "started_ticks": 1})),
        _left(tmp_path, "rehearsal-x", None),
        _left(tmp_path, "probe-64-nobody", None),
    ]
    mine = new_scratch(tmp_path, PROBE)
    assert not dead.exists()
    assert sorted(tmp_path.iterdir()) == sorted([*kept, mine])
    assert sweep(tmp_path, ownerless=True) == (kept[-1],)
    assert sweep(tmp_path / "none", ownerless=True) == ()


def test_a_folder_in_which_an_engine_still_works_is_waited_for_and_not_swept(tmp_path: Path) -> None:
    folder = _left(tmp_path, "probe-64-x", None)
    request = folder / "engine.request.json"
    engine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)", str(request)])
    try:
        deadline = time.monotonic() + 5
        while engines_of(tmp_path) != (engine.pid,):
            assert time.monotonic() < deadline
        assert sweep(tmp_path, ownerless=True) == ()
        assert wait_for_engines(tmp_path, 0.2) == (engine.pid,)
    finally:
        engine.kill()
        engine.wait()
    assert wait_for_engines(tmp_path, 5.0) == ()
    assert sweep(tmp_path, ownerless=True) == (folder,)
