"""The scripted engine, with one line appended to a log for every generation that is begun.

python tests/scripted/counting_engine.py LOG SCRIPT.json REQUEST.json EVENTS_FD
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from engine import Script, ScriptedEngine

from fitladder.engine.child.main import serve
from fitladder.sampling.engine_protocol import Completion, Progress, SampleRequest


class CountingEngine(ScriptedEngine):
    """Counts what was really begun, whatever Prefect or a bundle says."""

    log: Path

    def generate(
        self, requests: Sequence[SampleRequest], on_progress: Callable[[Progress], None]
    ) -> list[Completion]:
        if self.stage == 0:
            key = self.request.key
            descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(descriptor, f"{key.experiment_id}/{key.phase}@{key.thinking_budget_tokens}\n".encode())
            os.close(descriptor)
        return super().generate(requests, on_progress)


if __name__ == "__main__":
    CountingEngine.log = Path(sys.argv[1])
    script = Script.load(Path(sys.argv[2]))
    sys.exit(serve(lambda request: CountingEngine(request, script), sys.argv[-2:]))
