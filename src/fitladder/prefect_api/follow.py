"""Polling of one flow run until it ends or waits for an answer.

Turns the message of a failed run back into the error that it was, so that a command ends with its exit code.
"""

import inspect
import re
import time
from collections.abc import Callable

from fitladder import errors
from fitladder.errors import EngineFailed, FitladderError
from fitladder.prefect_api.client import PrefectApi
from fitladder.prefect_api.runs import FlowRun, live_line, read_run

__all__ = ["follow", "refusal_of"]

POLL_S = 0.4
REFUSALS = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, FitladderError)
}
_NAMED = re.compile(r"\b([A-Z][A-Za-z]+): (.*)", re.DOTALL)


def refusal_of(run: FlowRun) -> FitladderError:
    """The error of a run that did not complete, with the run's name."""
    found = _NAMED.search(run.message)
    kind = REFUSALS.get(found.group(1)) if found else None
    if kind is not None and found is not None:
        return kind(found.group(2))
    return EngineFailed(
        f"{run.flow} run {run.name} ended as {run.state_name}", got=run.message or "no message"
    )


def follow(
    api: PrefectApi,
    run_id: str,
    *,
    on_line: Callable[[str], None],
    check_alive: Callable[[], None],
    until: Callable[[FlowRun], bool] = lambda _: False,
) -> FlowRun:
    """Poll a run until it is final or `until` holds, and return its last state.

    Args:
        on_line: called with every new progress line of a phase.
        check_alive: called at each poll; raises where a process that is needed ended.
        until: condition to return earlier.
    """
    last: str | None = None
    while True:
        run = read_run(api, run_id)
        if run.state_type == "RUNNING" and run.flow == "phase":
            line = live_line(api, run_id)
            if line is not None and line != last:
                last = line
                on_line(line)
        if run.is_final or until(run):
            return run
        check_alive()
        time.sleep(POLL_S)
