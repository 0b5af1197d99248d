"""Why did an engine process end? One line out of an exit status and the end of a log."""

import os
import re
import signal
from pathlib import Path

__all__ = ["describe_exit", "last_cause", "log_cause"]

TAIL_BYTES = 65_536
_PREFIX = re.compile(r"^(\[rank\d+\]:\s*|\([^)]*pid=\d+\)\s*)+")
_RAISED = re.compile(r"^([A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt|Warning)|Fatal Python error)\b")


def describe_exit(returncode: int | None) -> str:
    """Words for a `Popen.returncode`: exit code, signal name, or still running."""
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
    """`last_cause` of a log file's end; one that cannot be read has nothing logged."""
    try:
        with path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - TAIL_BYTES))
            return last_cause(stream.read().decode("utf-8", "replace"))
    except OSError:
        return last_cause("")


def last_cause(text: str) -> str:
    """The last raised error in a log's text, else its last line, else `nothing logged`; one short line."""
    lines = [_PREFIX.sub("", line).strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    raised = [line for line in lines if _RAISED.match(line)]
    return (raised or lines or ["nothing logged"])[-1][:300]
