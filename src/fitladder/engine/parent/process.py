"""Parent side of an engine process: start it, wait for its facts, let it generate, end it.

Imports no vllm. No engine outlives its phase, be it a deadline, a crash, Ctrl-C or the death of this process:
the child leads a process group that is killed on every way out, and ends itself when its input pipe closes.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from fitladder.canonical import parse_model, sha256_file
from fitladder.engine.environment import child_environment
from fitladder.engine.messages import (
    GENERATE,
    STOP,
    Event,
    Failed,
    GenerationResult,
    LiveCounts,
    ReportedFacts,
    event_name,
)
from fitladder.engine.parent.failure import describe_exit, log_cause
from fitladder.engine.request import ProcessRequest, write_request
from fitladder.errors import EngineFailed, EnvironmentNotReady
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts
from fitladder.sampling.engine_protocol import Progress

__all__ = ["EngineProcess", "engine_command"]

STOP_GRACE_S = 20.0  # an idle engine frees its device within seconds
TERM_GRACE_S = 3.0

_Event = TypeVar("_Event", bound=Event)
OnProgress = Callable[[Literal[1, 2], Progress], None]


def engine_command(python: Path, module: str = "fitladder.engine.child.vllm_engine") -> list[str]:
    """Command of an engine process.

    Args:
        python: interpreter of the engine environment.
        module: what to run, by default the engine of a phase.

    Raises EnvironmentNotReady where there is no such interpreter.
    """
    if not python.is_file():
        raise EnvironmentNotReady(
            "no Python of the engine environment",
            got=python,
            do="run `make setup` or set FITLADDER_ENGINE_PYTHON",
        )
    return [str(python), "-P", "-m", module]  # -P: nothing is imported from the current folder


class EngineProcess:
    """One engine process; a context manager that ends the process and its group on leaving.

    After an error inside the context the group is killed at once, else the process may free its device first.
    Every failure is an EngineFailed of one line that names the log.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", events: int, log_path: Path) -> None:
        self._process, self._events, self.log_path = process, events, log_path
        self._buffer = bytearray()
        self._poll = select.poll()
        self._poll.register(events, select.POLLIN)

    @classmethod
    def start(
        cls,
        request: ProcessRequest,
        *,
        command: Sequence[str],
        log_path: Path,
        inherited: Mapping[str, str] | None = None,
    ) -> Self:
        """Start `command REQUEST.json EVENTS_FD`.

        Args:
            log_path: gets the child's output; the request file is written next to it, as `*.request.json`.
            inherited: environment to start from (engine/environment.py), by default this process's own.

        Raises EngineFailed where the command cannot be started.
        """
        request_path = log_path.with_suffix(".request.json")
        write_request(request_path, request)
        environment = child_environment(os.environ if inherited is None else inherited, request.environment)
        read_end, write_end = os.pipe()
        try:
            with log_path.open("ab") as log:
                process = subprocess.Popen(
                    [*command, str(request_path), str(write_end)],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    pass_fds=[write_end],
                    start_new_session=True,
                )
        except OSError as error:
            os.close(read_end)
            raise EngineFailed(
                "the engine process did not start", got=f"{error.strerror}: {command[0]}"
            ) from error
        finally:
            os.close(write_end)
        return cls(process, read_end, log_path)

    def wait_facts(self, deadline_s: float) -> tuple[EngineFacts, RuntimeFacts]:
        """Wait for the engine to be built; its facts and its environment's.

        Raises EngineFailed when it dies, refuses, or is not built in `deadline_s` seconds.
        """
        until = time.monotonic() + deadline_s
        reported = self._wait_for(ReportedFacts, "building the engine", until, deadline_s)
        return reported.facts, reported.runtime

    def generate(self, on_progress: OnProgress, deadline_s: float) -> GenerationResult:
        """Let the engine sample its request; returns when the samples are on disk.

        Args:
            on_progress: gets the stage (1 thinking, 2 answer) and its counts, about once a second.
            deadline_s: seconds from now for both stages.

        Raises EngineFailed on a crash, a refusal, past the deadline, or on a file whose digest is not the
        reported one.
        """
        self._command(GENERATE)
        until = time.monotonic() + deadline_s
        result = self._wait_for(GenerationResult, "generating", until, deadline_s, on_progress=on_progress)
        path, told = result.samples_path, result.samples_sha256
        found = sha256_file(path) if path.is_file() else "no file"
        if found != told:
            raise self._failed(
                f"the engine's rows are not the bytes that it reported: got {found}, need {told}"
            )
        return result

    def stop(self) -> int:
        """Tell the process to stop, wait up to 20 s, then kill its group. May be called more than once.

        Returns the exit status, negative for a signal.
        """
        try:
            if self._process.poll() is None:
                self._command(STOP, must=False)
                self._wait(STOP_GRACE_S)
        finally:
            self._kill_group()
        return self._process.returncode

    def kill(self) -> None:
        """Kill the whole group without telling it to stop: SIGTERM, and SIGKILL 3 s later."""
        self._kill_group()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()

    def _command(self, word: str, *, must: bool = True) -> None:
        try:
            stdin = self._process.stdin
            if stdin is None or stdin.closed:
                raise BrokenPipeError("the engine process was ended already")
            stdin.write(word.encode() + b"\n")
            stdin.flush()
        except OSError as error:
            if must:
                raise self._died("the engine died before it was told to " + word) from error

    def _wait_for(
        self,
        kind: type[_Event],
        doing: str,
        until: float,
        deadline_s: float,
        *,
        on_progress: OnProgress | None = None,
    ) -> _Event:
        """The next event, which must be of this kind; `progress` may come first where `on_progress` takes it.

        Args:
            until: `time.monotonic()` at which the wait ends; `deadline_s` is only named in the refusal.
        """
        while True:
            fields = self._next_event(doing, until, deadline_s)
            name = fields["event"]
            if name == event_name(LiveCounts) and on_progress is not None:
                live = self._parse(LiveCounts, fields, doing)
                on_progress(live.stage, live.progress)
            elif name == event_name(Failed):
                raise self._failed(
                    f"the engine failed while {doing}: {self._parse(Failed, fields, doing).message}"
                )
            elif name != event_name(kind):
                raise self._failed(f"the engine said {name!r} while {doing}")
            else:
                return self._parse(kind, fields, doing)

    def _next_event(self, doing: str, until: float, deadline_s: float) -> dict[str, Any]:
        line = self._line(until, doing, deadline_s)
        if line is None:
            raise self._died(f"the engine died while {doing}")
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise self._nonsense(line, doing) from error
        if not isinstance(fields, dict) or "event" not in fields:
            raise self._nonsense(line, doing)
        return fields

    def _parse(self, kind: type[_Event], fields: dict[str, Any], doing: str) -> _Event:
        try:
            return parse_model(kind, fields, where=f"event {event_name(kind)}", error=EngineFailed)
        except EngineFailed as error:
            raise self._failed(f"the engine reported nonsense while {doing}: {error}") from error

    def _line(self, until: float, doing: str, deadline_s: float) -> str | None:
        while b"\n" not in self._buffer:
            left_s = until - time.monotonic()
            if left_s <= 0 or not self._poll.poll(left_s * 1000):
                self._kill_group()
                raise EngineFailed(
                    f"the engine passed its deadline while {doing}",
                    got=f"no answer in {deadline_s:g} s, last logged: {log_cause(self.log_path)}",
                    do=f"see {self.log_path}",
                )
            chunk = os.read(self._events, 1 << 16)
            if not chunk:
                return None
            self._buffer += chunk
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return line.decode("utf-8", "replace")

    def _nonsense(self, line: str, doing: str) -> EngineFailed:
        return self._failed(f"the engine reported nonsense while {doing}: {line[:80]!a}")

    def _failed(self, what: str) -> EngineFailed:
        self._kill_group()
        return EngineFailed(what, do=f"see {self.log_path}")

    def _died(self, what: str) -> EngineFailed:
        self._wait(TERM_GRACE_S)
        status = describe_exit(self._process.returncode)
        self._kill_group()
        return EngineFailed(what, got=f"{status}: {log_cause(self.log_path)}", do=f"see {self.log_path}")

    def _wait(self, seconds: float) -> None:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return

    def _kill_group(self) -> None:
        if self._events < 0:  # ended already: the process id may be in use by another process
            return
        for number, grace_s in ((signal.SIGTERM, TERM_GRACE_S), (signal.SIGKILL, None)):
            try:
                os.killpg(self._process.pid, number)
            except (ProcessLookupError, PermissionError):
                break
            if grace_s is not None:
                self._wait(grace_s)
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):  # bytes that the child did not read
                self._process.stdin.close()
        os.close(self._events)
        self._events = -1
