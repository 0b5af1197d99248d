"""Parent side of the engine process of one cell: wait until it is warm, then measure one run at a time."""

import time
from collections.abc import Callable
from pathlib import Path

from fitladder.engine.parent.process import EngineProcess, engine_command
from fitladder.sampling.engine_protocol import Progress
from fitladder.study.messages import MeasuredRun, Ready
from fitladder.study.plan import Kind

__all__ = ["CellProcess", "cell_command"]


def cell_command(python: Path) -> list[str]:
    """Command of a cell's process in the environment of `python`. Raises EnvironmentNotReady without one."""
    return engine_command(python, "fitladder.study.child")


class CellProcess(EngineProcess):
    """An engine process that is warmed up after its facts and then runs the workload whenever it is told."""

    def wait_ready(self, deadline_s: float) -> None:
        """Wait for the end of the warm-up. Raises EngineFailed as `wait_facts` does."""
        self._wait_for(Ready, "warming up", time.monotonic() + deadline_s, deadline_s)

    def measure(self, kind: Kind, on_progress: Callable[[Progress], None], deadline_s: float) -> MeasuredRun:
        """Run the workload once.

        Args:
            kind: `ours` for the loop that phases use, `bare` for `LLM.generate` alone.
            on_progress: gets the counts of a run by `ours`, about once a second; `bare` reports none.
            deadline_s: seconds from now.

        Raises EngineFailed on a crash, a refusal, past the deadline, or where another kind was run.
        """
        self._command(kind)
        run = self._wait_for(
            MeasuredRun,
            "generating",
            time.monotonic() + deadline_s,
            deadline_s,
            on_progress=lambda _, progress: on_progress(progress),
        )
        if run.kind != kind:
            raise self._failed(f"the engine ran {run.kind!r}, not {kind!r}")
        return run
