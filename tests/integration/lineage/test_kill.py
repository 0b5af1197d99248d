"""A lineage run that is killed, children and all, goes on when it is started again."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from support import dvc_checkout as make

from fitladder.dvc_api.check import check_lineage

ID = make.ID


def test_killed_it_goes_on_and_ends_with_the_same_bytes(checkout: Path, tmp_path: Path) -> None:
    for name in ("audits", "selection", "semantics", "reports"):
        shutil.rmtree(checkout / "data" / name)
    program = Path(sys.executable).parent / "fitladder"
    words = [str(program), "lineage", "ingest", ID, "--root", str(tmp_path / "root")]
    for delay_s in (0.4, 1.8):  # while bundles come in; while stages run
        run = subprocess.Popen(
            words,
            cwd=checkout,
            env=make.environment(checkout),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(delay_s)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait(20)
    said = make.fitladder(checkout, *words[1:])
    assert said.returncode == 0, said.stderr
    assert make.git(checkout, "status", "--short") == ""
    check_lineage(checkout, ID, with_remotes=True)
