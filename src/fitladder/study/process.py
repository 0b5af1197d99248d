"""The parent's side of one cell's engine process: ready, then one measured run at a time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fitladder.engine.parent.process import EngineProcess, engine_command
from fitladder.sampling.engine_protocol import Progress
from fitladder.study.plan import Kind

__all__ = ["CellProcess", "Measured", "cell_command"]


@dataclass(frozen=True)
class Measured:
    """What one run came to."""

    generation_us: int
    sampled_tokens: int
    counters: dict[str, int]
    warnings: tuple[str, ...]


def cell_command(python: Path) -> list[str]:
    """Command of a cell in the environment of `python`. Raises EnvironmentNotReady without one."""
    return engine_command(python, "fitladder.study.child")


class CellProcess(EngineProcess):
    """As any engine process, with a warm-up after the facts and runs as often as asked."""

    def wait_ready(self, deadline_s: float) -> None:
        """Until the warm-up is over. Raises EngineFailed as `wait_facts` does."""
        self._event("ready", time.monotonic() + deadline_s, "warming up", deadline_s)

    def measure(self, kind: Kind, on_progress: Callable[[Progress], None], deadline_s: float) -> Measured:
        """One run of the workload. Raises EngineFailed on a crash, a refusal, or past the deadline."""
        self._say(kind)
        until = time.monotonic() + deadline_s
        while True:
            event = self._event(None, until, "generating", deadline_s)
            if event["event"] == "progress":
                on_progress(Progress(**{name: event[name] for name in Progress.__dataclass_fields__}))
                continue
            if event["event"] != "measured" or event.get("kind") != kind:
                raise self._failed(f"the engine said {event['event']!r} while generating")
            return Measured(
                event["generation_us"], event["sampled_tokens"], event["counters"], tuple(event["warnings"])
            )
