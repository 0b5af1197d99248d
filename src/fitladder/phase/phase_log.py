"""Log file of one phase: which step began and ended when, and what kind of error ended it.

An error is named by its kind only: its message may quote what an engine wrote, and so text of a prompt.
"""

import contextlib
import functools
import logging
import os
import time
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

from fitladder.logs import log_to_file
from fitladder.records.bundle_key import BundleKey
from fitladder.workspace import Workspace

__all__ = ["logged_step", "phase_log"]

P = ParamSpec("P")
R = TypeVar("R")
log = logging.getLogger(__name__)


@contextlib.contextmanager
def phase_log(workspace: Workspace, key: BundleKey, go_sha256: str) -> Iterator[None]:
    """Append every log line of the block to `workspace.phase_log(...)`, also how it ended.

    Args:
        key: experiment, budget and phase, which name the file.
        go_sha256: the GO that the phase is run with, for the first line.
    """
    path = workspace.phase_log(key.experiment_id, key.thinking_budget_tokens, key.phase)
    with log_to_file(path), _logged(f"{key}", f"process {os.getpid()}, GO {go_sha256}"):
        yield


def logged_step(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: log a line before the call, and one after it with its seconds and how it ended."""

    def decorate(step: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(step)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with _logged(name):
                return step(*args, **kwargs)

        return call

    return decorate


@contextlib.contextmanager
def _logged(name: str, details: str = "") -> Iterator[None]:
    began_s = time.monotonic()
    log.info("%s begins%s", name, f": {details}" if details else "")
    try:
        yield
    except BaseException as error:
        log.warning("%s ended after %.1f s: %s", name, time.monotonic() - began_s, type(error).__name__)
        raise
    log.info("%s done after %.1f s", name, time.monotonic() - began_s)
