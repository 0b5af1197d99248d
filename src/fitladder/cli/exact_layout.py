"""A model's cache laid out by vLLM itself, in a child process of the engine environment."""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fitladder.capacity.layout_records import StatedLayout, parse_layout
from fitladder.engine.environment import child_environment
from fitladder.errors import EngineFailed, EnvironmentNotReady, InputRefused

__all__ = ["ask_vllm", "lay_out_exactly"]

ORACLE = "fitladder.engine.child.kv_oracle"
POOL_BYTES = 64 << 30  # only its blocks depend on it, and they are not used
QUIET = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_PLUGINS": "",
    "TRANSFORMERS_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}
TIMEOUT_S = 300.0


def ask_vllm(
    python: Path, jobs: Sequence[dict[str, Any]], *, sources: Path | None = None, timeout_s: float = TIMEOUT_S
) -> list[dict[str, Any]]:
    """One result for each job of `fitladder.engine.child.kv_oracle`, from the environment of `python`.

    sources: another vLLM's Python sources, which win over the installed ones. Raises EnvironmentNotReady
    without an engine environment, EngineFailed where the process dies, hangs or says something else.
    """
    if not python.is_file():  # engine.parent knows this too, and loads what an engine's samples need
        raise EnvironmentNotReady(
            "no Python of the engine environment",
            got=python,
            do="run `make setup` or set FITLADDER_ENGINE_PYTHON",
        )
    command = [str(python), "-P", "-m", ORACLE]
    with tempfile.TemporaryDirectory(prefix="fitladder-oracle-") as scratch:
        own = QUIET | {"VLLM_CACHE_ROOT": scratch, "TMPDIR": scratch}
        if sources is not None:
            own |= {"PYTHONPATH": str(sources)}
        try:
            done = subprocess.run(
                command,
                input="".join(json.dumps(job) + "\n" for job in jobs),
                env=child_environment(os.environ, own),
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise EngineFailed("vLLM's layout", got=f"no answer in {timeout_s:.0f} s") from error
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != len(jobs):
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise EngineFailed("vLLM's layout", got=f"exit {done.returncode}, {last[:300]}")
    try:
        return [json.loads(line) for line in lines]
    except ValueError as error:
        raise EngineFailed("vLLM's layout", got=done.stdout[:200], need="a line of JSON a job") from error


def lay_out_exactly(
    python: Path, folder: Path, lengths: Sequence[int], arguments: dict[str, Any], *, where: str
) -> StatedLayout:
    """vLLM's own layout for a folder with a config.json, which refusals name `where`.

    Raises InputRefused with vLLM's reason where it refuses.
    """
    job = {"folder": str(folder.resolve()), "lengths": list(lengths), "memory_bytes": POOL_BYTES}
    (result,) = ask_vllm(python, [job | {"arguments": arguments}])
    if "refused" in result:
        raise InputRefused(f"{where}: vLLM {result.get('vllm')} refuses it", got=result["refused"][:400])
    return parse_layout(result)
