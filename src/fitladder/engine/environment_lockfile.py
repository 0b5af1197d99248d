"""Which lock is an engine's environment made from, and is the environment the one it names?

One lock a kind of engine. It reads no environment and installs nothing: versions are handed in.
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
    """The lock of this kind of engine in the folder of locks, for the receipt; None where there is none."""
    path = locks / LOCKS[backend]
    return path if path.is_file() else None


def parse_pins(text: str) -> dict[str, str]:
    """Version by normalised name of each pinned requirement."""
    return {_normal(name): version for name, version in _PIN.findall(text)}


def audit_lockfile(pins: Mapping[str, str], installed: Mapping[str, str]) -> tuple[str, ...]:
    """A line for each pinned package that is absent or of another version; local ones play no part.

    A lock's digest in a receipt says what should be installed; these lines say where it is not.
    """
    found = {_normal(name): version.partition("+")[0] for name, version in installed.items()}
    return tuple(
        f"engine lock: {name} got {found.get(name, 'none')}, need {version}"
        for name, version in sorted(pins.items())
        if found.get(name) != version.partition("+")[0]
    )


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
