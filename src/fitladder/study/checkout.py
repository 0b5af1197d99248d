"""A study of this checkout on its device, for the command and for the Prefect flow.

Holds the device's lock while engines run, so that no phase and no rehearsal shares the device. The results
carry the digest of the engine lock file in `locks/`.
"""

import os
from collections.abc import Callable
from pathlib import Path

from fitladder.errors import UsageError
from fitladder.files.lock import hold_lock
from fitladder.study.bundle import STUDY, VerifiedStudy, verify_study
from fitladder.study.process import cell_command
from fitladder.study.run import StudyHost, run_study
from fitladder.workspace import ENGINE_PYTHON, Workspace

__all__ = ["run_here", "study_host"]


def study_host(
    workspace: Workspace,
    name: str,
    *,
    say: Callable[[str], None],
    stop_after_s: float | None = None,
    engine_python: Path | None = None,
    models: Path | None = None,
) -> StudyHost:
    """Folders, engine command, models and engine locks of a checkout for `data/studies/NAME`.

    Args:
        say: receives each line of progress.
        stop_after_s: start no run that would end later, counted from the start of the session.
        engine_python, models: other than the checkout's own `.venv-vllm` and `models`.

    Raises UsageError where no study of this name lies in the data folder.
    """
    folder = workspace.data / "studies" / name
    if os.sep in name or not (folder / STUDY).is_file():
        raise UsageError("no such study", got=repr(name), need=f"a folder of {folder.parent} with a {STUDY}")
    own = workspace.environment.get(ENGINE_PYTHON) or workspace.folder / ".venv-vllm" / "bin" / "python"
    python = Path(engine_python or own)
    return StudyHost(
        out=folder.absolute(),
        work=workspace.folder / "runs" / "studies" / name,
        command=lambda: cell_command(python.absolute()),
        models=(models or workspace.folder / "models").absolute(),
        locks=workspace.folder / "locks",
        stop_after_s=stop_after_s,
        say=say,
    )


def run_here(workspace: Workspace, host: StudyHost) -> VerifiedStudy:
    """Run what is left of a study under the device's lock, then verify its folder.

    Raises RootBusy naming the holder where an engine of this checkout is on the device.
    """
    workspace.device_lock.parent.mkdir(parents=True, exist_ok=True)
    with hold_lock(workspace.device_lock, f"study {host.out.name}"):
        run_study(host.out / STUDY, host)
    return verify_study(host.out)
