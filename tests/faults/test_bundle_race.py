"""Several writers on one fresh root in the same second: one gets it, the others are told who has it."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from support import bundles as make

from fitladder.errors import RootBusy
from fitladder.store.held_root import hold_root
from fitladder.store.verify_root import verify_root

PHASE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support import bundles as make
from fitladder.store.held_root import hold_root
from fitladder.errors import FitladderError
print("ready", flush=True)
sys.stdin.readline()
try:
    with hold_root(Path(sys.argv[1]), make.ID, "generation", flow_run_id=sys.argv[3]) as held:
        make.complete(held, make.begin(held, make.experiment(), make.key()))
        print("done", flush=True)
        sys.stdin.readline()
except FitladderError as refusal:
    print(refusal, flush=True)
"""


def test_two_processes_under_a_frozen_clock(tmp_path: Path) -> None:
    """Both would note 2026-01-02T03:04:05Z (make.NOON_S): nothing is named or ordered by it."""
    root = tmp_path / "root"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PHASE, str(root), str(Path(__file__).parents[1]), f"run-{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        lines = [process.stdout.readline().strip() for process in processes if process.stdout]
    finally:
        for process in processes:
            process.communicate("end\n", timeout=60)
    assert lines.count("done") == 1
    winner = lines.index("done")
    assert f"pid {processes[winner].pid} on" in lines[1 - winner]
    assert f"flow run run-{winner}" in lines[1 - winner]
    found = verify_root(root, make.ID)
    assert len(found.bundles) == 1
    assert found.bundles[0].receipt.noted_at_s == make.NOON_S + 60


def test_twelve_threads_on_one_fresh_root(tmp_path: Path) -> None:
    root, start, end = tmp_path / "root", threading.Barrier(12), threading.Barrier(12)
    outcomes: list[str] = []

    def write(number: int) -> None:
        start.wait()
        try:
            with hold_root(root, make.ID, f"thread {number}") as held:
                make.begin(held, make.experiment(), make.key())
                outcomes.append("held")
                end.wait()
        except RootBusy as refusal:
            outcomes.append(str(refusal))
            end.wait()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert outcomes.count("held") == 1
    assert sum(f"pid {os.getpid()} on" in outcome for outcome in outcomes) == 11
    assert len(verify_root(root, make.ID).preflights) == 1
