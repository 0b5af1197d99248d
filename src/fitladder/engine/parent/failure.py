"""Cause of an engine process's end in one line, from its exit status and the end of its log."""

import os
import re
import signal
from pathlib import Path

__all__ = ["describe_exit", "last_cause", "log_cause"]

TAIL_BYTES = 65_536
_PREFIX = re.compile(r"^(\[rank\d+\]:\s*|\([^)]*pid=\d+\)\s*)+")
_RAISED = re.compile(r"^([A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt|Warning)|Fatal Python error)\b")


def describe_exit(returncode: int | None) -> str:
    """Words for a `Popen.returncode`: `exit code 3`, `killed by SIGSEGV`, or `still running` for None."""
    if returncode is None:
        return "still running"
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return f"killed by {name}" + (", perhaps out of memory" if name == "SIGKILL" else "")


def log_cause(path: Path) -> str:
    """`last_cause` of the last 64 KiB of a log file; `nothing logged` where it cannot be read."""
    try:
        with path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - TAIL_BYTES))
            return last_cause(stream.read().decode("utf-8", "replace"))
    except OSError:
        return last_cause("")


def last_cause(text: str) -> str:
    """The last line that names a raised exception, else the last line, else `nothing logged`.

    vLLM's process prefixes are removed; 300 characters at most.
    """
    lines = [_PREFIX.sub("", line).strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    raised = [line for line in lines if _RAISED.match(line)]
    return (raised or lines or ["nothing logged"])[-1][:300]
