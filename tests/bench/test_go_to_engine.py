"""How long from a GO to the construction of the engine, with warm workers? Printed, not judged.

The clock starts when the server takes the form and stops when the engine process is there: launch resumes,
everything is rechecked, the GO recorded, the phase dispatched, started, authorised, its inputs checked.
"""

import os
import time

import pytest
from support.prefect_server import PrefectServer

from fitladder.prefect_api.runs import resume_run

pytestmark = pytest.mark.server
REPEATS = int(os.environ.get("FITLADDER_BENCH_REPEATS", "1"))


def test_seconds_from_go_to_engine(prefect_server: PrefectServer) -> None:
    prefect = prefect_server
    prefect.checkout.script(outcomes=["close:20"])
    seconds = []
    prefect.need("cpu", "gpu")
    for _ in range(REPEATS):
        experiment = prefect.fresh_experiment()
        waiting = prefect.suspended(prefect.launch(experiment))
        form = prefect.form(waiting)
        began = time.perf_counter()
        resume_run(prefect.api, waiting, form)
        while not prefect.engines():
            assert time.perf_counter() - began < 120
            time.sleep(0.02)
        seconds.append(time.perf_counter() - began)
        prefect.wait(prefect.phase(experiment))
    print(f"\nGO to engine construction, warm workers: {', '.join(f'{one:.1f}' for one in seconds)} s")
    assert len(seconds) == REPEATS
