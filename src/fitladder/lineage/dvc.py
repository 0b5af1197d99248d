"""How is the dvc command run here: in which environment, under which lock, failing in which one line?

It imports no dvc; the command of this environment is a child process. It does not judge what DVC says.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fitladder.errors import EnvironmentNotReady, LineageError
from fitladder.lineage.lock import project_lock

__all__ = ["Dvc", "dvc_environment"]

SITE_CACHE = ".cache/dvc"
WAIT_S = 600.0
LIMIT_S = 3600.0
_NOISE = (
    "To track the changes",
    "\tgit add",
    "To enable auto staging",
    "\tdvc config",
    "WARNING:",
    "Use `dvc",
)


def dvc_environment(checkout: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` plus: no analytics, caches inside the checkout, this environment's commands first."""
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
        """Run `dvc WORDS` and return its standard output.

        Raises LineageError with DVC's own last error line, EnvironmentNotReady where dvc is not installed.
        """
        with project_lock(self.checkout, "dvc " + " ".join(words), wait_s=self.wait_s):
            return self._run(words)

    def _run(self, words: Sequence[str]) -> str:
        program = Path(sys.executable).parent / "dvc"
        if not program.is_file():
            raise EnvironmentNotReady(
                "the dvc command", got="none beside this Python", need=str(program), do="run `make setup`"
            )
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
        if done.returncode != 0:
            raise LineageError(f"dvc {' '.join(words)} failed", got=_reason(done.stdout, done.stderr))
        return done.stdout


def _reason(stdout: str, stderr: str) -> str:
    """The refusal of a stage of ours where there is one, else DVC's first error, else its last words."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(_NOISE)]
    for prefix in ("fitladder: ", "ERROR: "):
        found = [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]
        if found:
            return " / ".join(dict.fromkeys(found))[:1000]
    spoken = lines or [line.strip() for line in stdout.splitlines() if line.strip()]
    return spoken[-1][:1000] if spoken else "no message"
