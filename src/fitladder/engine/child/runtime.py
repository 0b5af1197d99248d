"""Environment of this engine process: versions, the device's driver, the lock file, what `pip check` finds.

Reads this process and runs two commands (`pip check`, `nvidia-smi`); imports neither vllm nor torch.
"""

import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from fitladder.canonical import sha256_file
from fitladder.engine.environment import recorded_environment
from fitladder.engine.environment_lockfile import audit_lockfile, parse_pins
from fitladder.errors import EngineFailed
from fitladder.records.engine_facts import RuntimeFacts

__all__ = ["PipCheck", "runtime_facts"]

COMMAND_TIMEOUT_S = 120


class PipCheck:
    """A `pip check` that runs while the engine is built, which takes longer."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pip", "check", "--disable-pip-version-check"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def complaints(self) -> tuple[str, ...]:
        """Wait for it (120 s at most); its lines, sorted, none where every requirement is met.

        A pip that does not end, or ends with an error and no line, counts as a complaint.
        """
        try:
            output, _ = self._process.communicate(timeout=COMMAND_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            return ("pip check gave no answer",)
        if self._process.returncode == 0:
            return ()
        lines = sorted(line.strip() for line in output.splitlines() if line.strip())
        return tuple(lines) or (f"pip check ended with {self._process.returncode}",)


def runtime_facts(
    *, pip_check: PipCheck, lock_path: str | None, environment: Mapping[str, str], cuda: str | None
) -> RuntimeFacts:
    """Facts of this process's environment.

    Args:
        pip_check: started before the engine's build.
        lock_path: the lock file that the environment was installed from; None where there is none.
        environment: the registered variables, each of which is recorded.
        cuda: `torch.version.cuda` on a CUDA device, None on a CPU.

    `pip_check` of the facts holds the complaints, then one line for each package that is not as locked.
    Raises EngineFailed on an unreadable lock, or on a CUDA device whose driver does not tell its version.
    """
    try:
        lock = None if lock_path is None else sha256_file(Path(lock_path))
        pins = {} if lock_path is None else parse_pins(Path(lock_path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise EngineFailed(f"the engine lock {lock_path} cannot be read", got=error) from error
    packages = _packages()
    return RuntimeFacts(
        python=platform.python_version(),
        platform=platform.platform(),
        packages=packages,
        pip_check=(*pip_check.complaints(), *audit_lockfile(pins, packages)),
        engine_lock_sha256=lock,
        device_driver=None if cuda is None else _driver(),
        cuda=cuda,
        environment=recorded_environment(os.environ, environment),
    )


def _packages() -> dict[str, str]:
    """Installed distributions by normalised name; of two the one that would be imported."""
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        name = (distribution.metadata["Name"] or "").lower().replace("_", "-")
        if name:
            found.setdefault(name, distribution.version)
    return dict(sorted(found.items()))


def _driver() -> str:
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineFailed("the driver's version cannot be read", got=error, do="run nvidia-smi") from error
    return answer.stdout.splitlines()[0].strip()
