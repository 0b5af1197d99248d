"""Seal of a process that audits or selects: it opens token columns, receipts and code, and nothing else.

Called once, by the command, before anything that could look is imported. Where the kernel has no Landlock the
audit hook and the limit on open files (sandbox/audit_hook.py) stand alone, and the returned words say so.
"""

import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

import fitladder
from fitladder.errors import ContentSealed
from fitladder.registry.data_paths import audits_folder, bundles_folder, selection_path
from fitladder.sandbox.landlock import landlock_abi, restrict_files

__all__ = ["BLIND", "seal_process"]

BLIND = ("audit", "selection")  # the stages that see no text
SYSTEM = (
    "/dev/null",
    "/dev/urandom",
    "/etc",
    "/lib",
    "/lib64",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
)
HOOK_ONLY = "an audit hook and a limit on open files alone: this kernel has no Landlock"


def seal_process(data_dir: Path, experiment_id: str, *, writes: str | None = None) -> str:
    """Seal this process for the rest of its life. Returns words that name the seal in force.

    Args:
        data_dir: the checkout's data folder.
        experiment_id: whose bundles and audits stay readable, with dvc.lock and program code.
        writes: `audit` or `selection` where that stage runs and may write its own outputs, else None.

    Raises ContentSealed where the kernel could seal but refuses to.
    """
    abi = landlock_abi()
    if abi == 0:
        return HOOK_ONLY
    audits, selection = audits_folder(data_dir, experiment_id), selection_path(data_dir, experiment_id)
    own = {"audit": [audits], "selection": [selection.parent]}[writes] if writes else []
    for folder in own:
        folder.mkdir(parents=True, exist_ok=True)
    inputs = (bundles_folder(data_dir, experiment_id), audits, data_dir.parent / "dvc.lock")
    restrict_files([path for path in (*inputs, *_code(data_dir)) if path.exists()], own)
    return f"the kernel (Landlock ABI {abi}), an audit hook and a limit on open files"


def _code(data_dir: Path) -> Iterator[Path]:
    """Folders that programs and libraries come from. One that the data lies in is no such folder."""
    data = data_dir.resolve()
    libraries = (sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    for path in _unique([*SYSTEM, *libraries, Path(fitladder.__file__).parent]):
        if data.is_relative_to(path):
            raise ContentSealed(f"{data} lies among the programs of this machine", got=path, do="move it")
        yield path
    for path in _unique(sys.path):  # the checkout itself may be one: nothing is imported from it then
        if not data.is_relative_to(path):
            yield path


def _unique(paths: Iterable[str | Path]) -> list[Path]:
    return list(dict.fromkeys(Path(path).resolve() for path in paths if str(path)))
