"""Lock file of an engine environment, and how the installed packages differ from it.

One lock file for each backend, in `locks/`. Reads no environment and installs nothing: versions are
arguments.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

__all__ = ["audit_lockfile", "engine_lockfile", "parse_pins"]

Backend = Literal["vllm-cuda", "vllm-cpu"]
LOCKS: dict[Backend, str] = {"vllm-cuda": "engine-gpu.txt", "vllm-cpu": "engine-cpu.txt"}
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def engine_lockfile(locks: Path, backend: Backend) -> Path | None:
    """Path of the lock file of this backend in a folder of lock files; None where there is none."""
    path = locks / LOCKS[backend]
    return path if path.is_file() else None


def parse_pins(text: str) -> dict[str, str]:
    """Version by normalised name (PEP 503) of each `name==version` line of a requirements file."""
    return {_normal(name): version for name, version in _PIN.findall(text)}


def audit_lockfile(pins: Mapping[str, str], installed: Mapping[str, str]) -> tuple[str, ...]:
    """Differences between a lock file and what is installed.

    Args:
        pins: version by name, see `parse_pins`.
        installed: version by name, of the environment.

    Returns one line for each pinned package that is absent or of another version; local version labels
    (`+cpu`) are ignored, and so are packages that are installed and not pinned.
    """
    found = {_normal(name): version.partition("+")[0] for name, version in installed.items()}
    return tuple(
        f"engine lock: {name} got {found.get(name, 'none')}, need {version}"
        for name, version in sorted(pins.items())
        if found.get(name) != version.partition("+")[0]
    )


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
