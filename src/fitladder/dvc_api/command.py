"""Call of the dvc command: its environment, the lock it runs under, and its failure in one line.

The command of this Python environment runs as a child process; dvc is not imported. This is the only module
that starts it.
"""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fitladder.dvc_api.call_lock import project_lock
from fitladder.dvc_api.stale_rwlock import clear_stale_rwlock
from fitladder.errors import EnvironmentNotReady, LineageError

__all__ = ["Dvc", "dvc_environment"]

log = logging.getLogger(__name__)

SITE_CACHE = ".cache/dvc"
WAIT_S = 600.0
LIMIT_S = 3600.0
_OURS, _ERROR = "fitladder: ", "ERROR:"
_NOISE = (
    "WARNING:",
    "Is your cache up to date",
    "<https://",
    "To track the changes",
    "To enable auto staging",
)


def dvc_environment(checkout: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` with analytics off, caches inside the checkout and this environment's commands first."""
    here = str(Path(sys.executable).parent)
    return {
        **environment,
        "DVC_NO_ANALYTICS": "1",
        "DO_NOT_TRACK": "1",
        "DVC_SITE_CACHE_DIR": str(checkout / SITE_CACHE),
        "NO_COLOR": "1",
        "PATH": os.pathsep.join([here, environment.get("PATH", os.defpath)]),
    }


@dataclass(frozen=True)
class Dvc:
    """The dvc command for one checkout. Every call holds the project's lock."""

    checkout: Path
    environment: Mapping[str, str]
    wait_s: float = WAIT_S

    def run(self, *words: str) -> str:
        """Run dvc with these words and return its standard output.

        Raises LineageError with DVC's own last error line, EnvironmentNotReady where dvc is not installed.
        """
        with project_lock(self.checkout, "dvc " + " ".join(words), wait_s=self.wait_s):
            clear_stale_rwlock(self.checkout)
            return self._run(words)

    def _run(self, words: Sequence[str]) -> str:
        program = Path(sys.executable).parent / "dvc"
        if not program.is_file():
            raise EnvironmentNotReady(
                "the dvc command",
                got="none in the environment of this Python",
                need=str(program),
                do="run `make setup`",
            )
        began_s = time.monotonic()
        try:
            done = subprocess.run(
                [str(program), *words],
                cwd=self.checkout,
                env=dvc_environment(self.checkout, self.environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as failure:
            raise LineageError(f"dvc {' '.join(words)} did not end", got=f"{LIMIT_S:g} s") from failure
        log.debug("dvc %s: exit %d, %.1f s", " ".join(words), done.returncode, time.monotonic() - began_s)
        if done.returncode != 0:
            raise LineageError(f"dvc {' '.join(words)} failed", got=_reason(done.stdout, done.stderr))
        return done.stdout


def _reason(stdout: str, stderr: str) -> str:
    """The refusals of our stages where there are some, else DVC's error with what it lists below it."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(_NOISE)]
    refused = [line.removeprefix(_OURS) for line in lines if line.startswith(_OURS)]
    if refused:
        return " / ".join(dict.fromkeys(refused))[:1000]
    first = next((at for at, line in enumerate(lines) if line.startswith(_ERROR)), None)
    said = lines[first:] if first is not None else lines[-1:] or stdout.strip().splitlines()[-1:]
    return ", ".join(said).replace(f"{_ERROR} ", "").replace(":,", ":")[:1000] or "no message"
