"""Main loop of an engine process, for any engine: build, report facts, wait for `generate`, sample, report.

What is said on either side is in engine/messages.py. The samples go to a Parquet file that the parent moves
into a bundle. When the parent dies, standard input ends, and this process ends with everything it started.
"""

import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Literal

from fitladder.canonical import sha256_bytes
from fitladder.engine.child.generation import run_generation
from fitladder.engine.messages import (
    GENERATE,
    STOP,
    Event,
    Failed,
    GenerationResult,
    LiveCounts,
    ReportedFacts,
    render_event,
)
from fitladder.engine.request import EngineRequest, load_request
from fitladder.errors import EngineFailed, FitladderError
from fitladder.files.atomic import replace_file
from fitladder.registry.binding import PACKAGE, generation_code_sha256
from fitladder.sampling.engine_protocol import Engine, Progress
from fitladder.sampling.parquet import render_samples

__all__ = ["Commands", "Events", "serve", "serve_process"]

Commands = queue.SimpleQueue[str]


class Events:
    """Writer of events to the parent, on the descriptor that the parent passed."""

    def __init__(self, descriptor: int) -> None:
        self._stream = os.fdopen(descriptor, "w", encoding="utf-8")

    def send(self, event: Event) -> None:
        """Write and flush one event. A parent that is gone ends this process and its group."""
        try:
            self._stream.write(render_event(event))
            self._stream.flush()
        except BrokenPipeError:
            _end_group()


def serve(build: Callable[[EngineRequest], Engine], argv: Sequence[str]) -> int:
    """Run the engine process of one phase: one request, one engine, one generation.

    Args:
        build: makes the engine of a request.
        argv: request file, event descriptor.

    Returns the exit code, see `serve_process`.
    """

    def run(request_path: Path, events: Events, commands: Commands) -> int:
        return _run(build, load_request(request_path), events, commands)

    return serve_process(run, argv)


def serve_process(
    run: Callable[[Path, Events, Commands], int],
    argv: Sequence[str],
    *,
    words: Collection[str] = (GENERATE, STOP),
) -> int:
    """Run any engine process.

    Args:
        run: gets the request's path, the writer of events and the queue of commands; returns the exit code.
        argv: request file, event descriptor.
        words: commands to pass on; other lines are dropped.

    Returns what `run` returns. On an exception it sends `failed` and returns the exit code of that
    FitladderError, 9 (EngineFailed) for any other.
    """
    if len(argv) != 2 or not argv[1].isdecimal():
        sys.stderr.write("usage: ENGINE REQUEST.json EVENTS_FD (started by fitladder, not by hand)\n")
        return EngineFailed.exit_code
    events, commands = Events(int(argv[1])), _listen(words)
    try:
        return run(Path(argv[0]), events, commands)
    except FitladderError as error:
        traceback.print_exc()
        events.send(Failed(kind=type(error).__name__, message=str(error)))
        return error.exit_code
    except Exception as error:  # whatever broke inside the engine has to reach the parent as one line
        traceback.print_exc()
        events.send(Failed(kind=type(error).__name__, message=_one_line(error)))
        return EngineFailed.exit_code


def _run(
    build: Callable[[EngineRequest], Engine],
    request: EngineRequest,
    events: Events,
    commands: Commands,
) -> int:
    _check_code(request)
    engine = build(request)
    try:
        events.send(ReportedFacts(facts=engine.facts(), runtime=engine.runtime()))
        if commands.get() == STOP:
            return 0

        def report(stage: Literal[1, 2], progress: Progress) -> None:
            events.send(LiveCounts(stage=stage, progress=progress))

        generation = run_generation(engine, request, report)
        data = render_samples(generation.rows, request.key)
        samples_path = Path(request.samples_path)
        replace_file(samples_path, data, error=EngineFailed)
        events.send(
            GenerationResult(
                samples_path=samples_path,
                samples_sha256=sha256_bytes(data),
                rows=len(generation.rows),
                metadata=generation.metadata,
            )
        )
    finally:
        engine.close()
    return 0


def _check_code(request: EngineRequest) -> None:
    """Refuse to sample under other generation code than the parent's, or under a foreign start-up hook."""
    here = generation_code_sha256()
    if request.generation_code_sha256 not in (None, here):
        raise EngineFailed(
            f"the engine process imports other code, from {PACKAGE}",
            got=here,
            need=request.generation_code_sha256,
            do="install this checkout into the engine's environment: `make setup`",
        )
    standard = Path(os.__file__).parent
    for name in ("sitecustomize", "usercustomize"):
        path = getattr(sys.modules.get(name), "__file__", None)
        if path is not None and Path(path).parent != standard:
            raise EngineFailed(
                f"a {name} ran before the engine",
                got=path,
                need="none but the system's own",
                do="remove it, or take its folder out of PYTHONPATH",
            )


def _listen(words: Collection[str]) -> Commands:
    """Queue of the commands on standard input, read by a thread; the end of input ends the group."""
    commands: Commands = queue.SimpleQueue()

    def read() -> None:
        pending = b""
        while chunk := os.read(0, 4096):  # not sys.stdin: its lock would be held when the interpreter ends
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                if line.decode("ascii", "replace") in words:
                    commands.put(line.decode())
        _end_group()

    threading.Thread(target=read, name="parent", daemon=True).start()
    return commands


def _end_group() -> None:
    """End this process at once, and its whole group where it leads one (as the parent starts it)."""
    if os.getpid() == os.getpgrp():
        os.killpg(0, signal.SIGKILL)
    os._exit(EngineFailed.exit_code)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:400]}" if text else type(error).__name__
