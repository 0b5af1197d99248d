"""Handlers of the `fitladder` loggers: standard error for a command, a file for a phase.

Modules report progress at INFO, which a command shows, and details at DEBUG, which `--verbose` adds. No line
has token ids, text of a prompt or a sample, or an auth string in it.
"""

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["log_to_file", "log_to_stderr"]

ROOT = "fitladder"
DETAILED = "%(asctime)sZ %(levelname)-7s %(name)s: %(message)s"


class _StandardError(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to the process's standard error of that moment."""

    @property
    def stream(self) -> object:
        return sys.stderr

    @stream.setter
    def stream(self, _: object) -> None:
        return


def _formatter() -> logging.Formatter:
    formatter = logging.Formatter(DETAILED, datefmt="%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    return formatter


def log_to_stderr(*, verbose: bool) -> None:
    """Show progress on standard error; with `verbose`, also details, each with its UTC time and module."""
    logger = logging.getLogger(ROOT)
    for handler in [one for one in logger.handlers if isinstance(one, _StandardError)]:
        logger.removeHandler(handler)
    handler = _StandardError()
    if verbose:
        handler.setFormatter(_formatter())
    handler.setLevel(logging.DEBUG if verbose else logging.INFO)
    logger.addHandler(handler)
    logger.setLevel(handler.level)


@contextlib.contextmanager
def log_to_file(path: Path) -> Iterator[None]:
    """Append every line, details too, to `path` while the block runs; its folder is made.

    Raises OSError where the file cannot be opened.
    """
    logger = logging.getLogger(ROOT)
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(_formatter())
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
        handler.close()
