"""Paths of one checkout and its environment: registry, data, approvals, models, engine command, device.

Passed in at the edge, so that nothing below reads a global.
"""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fitladder.engine.environment_lockfile import engine_lockfile
from fitladder.engine.parent.process import engine_command
from fitladder.records.settings import Engine, Model
from fitladder.records.work_queue import DEFAULT_QUEUE

__all__ = ["DEFAULT_DEVICE", "DEVICE", "QUEUE", "Workspace", "slot_of", "workspace_here"]

ENGINE_COMMAND = "FITLADDER_ENGINE_COMMAND"  # another engine; every preflight of it says so
ENGINE_PYTHON = "FITLADDER_ENGINE_PYTHON"
DEVICE = "FITLADDER_GPU_SLOT"  # set by `fitladder agent`: the device that this process may use
QUEUE = "FITLADDER_QUEUE"  # this host's work queue on a server that several hosts share
DEFAULT_DEVICE = "gpu-0"


def slot_of(queue: str, device: str) -> str:
    """Name of the server's concurrency limit for one device of the host that serves `queue`."""
    return device if queue == DEFAULT_QUEUE else f"{queue}-{device}"


@dataclass(frozen=True)
class Workspace:
    """One checkout on one machine. `environment`: this process's, as it was when the workspace was made."""

    folder: Path
    environment: Mapping[str, str] = field(repr=False)
    params_name: str = "params.yaml"
    data_name: str = "data"

    @property
    def params(self) -> Path:
        return self.folder / self.params_name

    @property
    def data(self) -> Path:
        return self.folder / self.data_name

    @property
    def approvals(self) -> Path:
        return self.data / "approvals"

    @property
    def scratch(self) -> Path:
        """Where engines log and put rows down until they are bundled; nothing in it counts as done."""
        return self.folder / "runs" / ".scratch"

    @property
    def queue(self) -> str:
        """The work queue that this host serves, in every pool: what is asked for here runs here."""
        return self.environment.get(QUEUE) or DEFAULT_QUEUE

    @property
    def device(self) -> str:
        """The device that this process may use, by its name on this host."""
        return self.environment.get(DEVICE) or DEFAULT_DEVICE

    @property
    def slot(self) -> str:
        """The server's slot of that device."""
        return slot_of(self.queue, self.device)

    def phase_log(self, experiment_id: str, budget_tokens: int, phase: str) -> Path:
        """Log file of one phase, appended to at each attempt; nothing in it counts as done."""
        return self.folder / "runs" / ".logs" / f"{experiment_id}-{budget_tokens}-{phase}.log"

    @property
    def device_lock(self) -> Path:
        """Held by whoever has an engine on that device; a server that was away may lend its slot twice."""
        return self.folder / "runs" / f".{self.device}.lock"

    def engine_lockfile(self, engine: Engine) -> Path | None:
        """The lock file of this engine's environment, for the receipt."""
        return engine_lockfile(self.folder / "locks", engine.backend)

    def model_folder(self, model: Model) -> Path:
        """Where the model's local files lie: `models/<last part of its name, lower case>`."""
        return self.folder / "models" / model.name.rsplit("/", 1)[-1].lower()

    def engine_command(self) -> list[str]:
        """Command of the engine child. Raises EnvironmentNotReady where its environment is absent."""
        override = self.environment.get(ENGINE_COMMAND)
        if override:
            return shlex.split(override)
        python = self.environment.get(ENGINE_PYTHON) or str(self.folder / ".venv-vllm" / "bin" / "python")
        return engine_command(Path(python))

    def engine_override(self) -> dict[str, str]:
        """The command in place of the real engine, for the record; the engine itself would not say so."""
        command = self.environment.get(ENGINE_COMMAND)
        return {ENGINE_COMMAND: command} if command else {}


def workspace_here(folder: Path | None = None) -> Workspace:
    """The workspace of `folder`, or of the current directory, with this process's environment."""
    return Workspace((folder or Path.cwd()).absolute(), dict(os.environ))
