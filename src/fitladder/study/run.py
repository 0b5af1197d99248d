"""Run a study: engines of a batch together, repeats in seeded random blocks, each result written at once.

    python3 -m fitladder.study.run STUDY.yaml --out FOLDER --work FOLDER      (on a GPU host without a
    checkout)

Every cell has an engine process of its own. Runs that are done are not repeated; the failure of a cell is
recorded and the others go on. No run is started that would end after the session's time.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from fitladder.engine.convert.geometry_model import write_geometry_model
from fitladder.engine.environment_lockfile import engine_lockfile
from fitladder.engine.parent.process import EngineProcess
from fitladder.errors import EngineFailed, FitladderError, InputRefused
from fitladder.files.atomic import make_folder, write_new
from fitladder.records.generation_time import tokens_per_s, us_to_s
from fitladder.study.bundle import STUDY, write_study_bundle
from fitladder.study.measurements import (
    BuildRecord,
    FailureRecord,
    Measurements,
    RunRecord,
    check_drift,
    load_measurements,
    without_path,
    write_measurements,
)
from fitladder.study.plan import Cell, Study, Unit, load_study
from fitladder.study.process import CellProcess, cell_command
from fitladder.study.request import build_cell_request

__all__ = ["StudyHost", "run_study"]

RUN_MARGIN = 1.1  # a run is started where its longest one so far, times this, still fits


@dataclass(frozen=True)
class StudyHost:
    """Where and how a study runs.

    Args:
        out: folder of measurements, results and receipt.
        work: scratch folder of logs, requests and a model folder without weights.
        command: gives the command of a cell's process; called only where something is left to run.
        models: where the study's model folder is looked for.
        locks: folder of engine lock files, whose digest the results carry; None where there is none.
        stop_after_s: seconds from the start of the session after which no run may end.
        say: gets each line of progress.
    """

    out: Path
    work: Path
    command: Callable[[], Sequence[str]]
    models: Path = Path()
    locks: Path | None = None
    stop_after_s: float | None = None
    say: Callable[[str], None] = field(default=lambda line: print(line, flush=True), repr=False)  # noqa: T201

    def model(self, study: Study) -> str:
        """Model folder as the engine is given it; that of a preset is written first."""
        if study.model.preset is not None:
            return str(write_geometry_model(study.model.preset, self.work / study.model.preset))
        return str(self.models / str(study.model.folder))

    def engine_lockfile(self, study: Study) -> Path | None:
        """Lock file of the engine environment for the study's backend; None where this host has none."""
        return None if self.locks is None else engine_lockfile(self.locks, study.backend)


class _Session:
    """One session of a study: what is measured so far, and the time that is left."""

    def __init__(self, study: Study, host: StudyHost) -> None:
        self.study, self.host = study, host
        self.measured = load_measurements(host.out, study)
        self.number = self.measured.session + 1
        self.started = time.monotonic()

    def left_s(self) -> float:
        """Seconds until `stop_after_s`, infinite without one."""
        if self.host.stop_after_s is None:
            return float("inf")
        return self.started + self.host.stop_after_s - time.monotonic()

    def keep(self, record: BuildRecord | RunRecord | FailureRecord) -> None:
        """Append a record to the measurements and write them at once."""
        update: dict[str, tuple[object, ...]]
        if isinstance(record, BuildRecord):
            update = {"engines": (*self.measured.engines, record)}
        elif isinstance(record, RunRecord):
            update = {"runs": (*self.measured.runs, record)}
        else:
            update = {"failures": (*self.measured.failures, record)}
            self.say(f"{record.cell}: failed: {record.reason}")
        self.measured = self.measured.model_copy(update=update)
        write_measurements(self.host.out, self.measured)

    def say(self, line: str) -> None:
        """Report a line of progress, with the time that is left."""
        left = self.left_s()
        self.host.say(line if left == float("inf") else f"{line} [{left:.0f} s left]")

    def fail(self, cell: str, error: FitladderError) -> None:
        """Record the failure of a cell."""
        self.keep(FailureRecord(session=self.number, cell=cell, reason=str(error)))

    def pending(self, cell: Cell) -> bool:
        """True where a run of the cell is not done."""
        return any(
            not self.measured.has((cell.name, kind), repeat)
            for kind in cell.kinds
            for repeat in range(self.study.repeats)
        )

    def run_batch(self, batch: list[Cell], model: str) -> None:
        """Build the engines of a batch and run repeat after repeat; the engines end in any case."""
        with ExitStack() as stack:
            engines = self.build(batch, model, stack)
            for repeat in range(self.study.repeats):
                for unit in self.study.block(batch, repeat):
                    if unit[0] in engines and not self.measured.has(unit, repeat) and self.fits(unit):
                        self.run(engines, unit, repeat)

    def build(self, batch: list[Cell], model: str, stack: ExitStack) -> dict[str, CellProcess]:
        """Build the engines of a batch together; those that are warm and as before, by cell name."""
        command = self.host.command()
        started: dict[str, CellProcess] = {}
        for cell in batch:
            try:
                process = CellProcess.start(
                    build_cell_request(
                        self.study, cell, model, engine_lock_path=self.host.engine_lockfile(self.study)
                    ),
                    command=command,
                    log_path=self.host.work / f"{cell.name}.{self.number}.log",
                )
            except EngineFailed as error:
                self.fail(cell.name, error)
                continue
            stack.callback(EngineProcess.kill, process)
            started[cell.name] = process
        until = time.monotonic() + min(self.study.build_deadline_s, self.left_s())
        ready: dict[str, CellProcess] = {}
        for name, process in started.items():
            try:
                facts, runtime = process.wait_facts(max(0.1, until - time.monotonic()))
                facts = without_path(facts, model)
                record = BuildRecord(session=self.number, cell=name, facts=facts, runtime=runtime)
                check_drift(self.measured, record)
                self.keep(record)
                process.wait_ready(max(0.1, until - time.monotonic()))
            except EngineFailed as error:
                process.kill()
                self.fail(name, error)
                continue
            self.say(f"{name}: ready, {facts.num_blocks} blocks, loaded in {facts.load_s:.0f} s")
            ready[name] = process
        return ready

    def fits(self, unit: Unit) -> bool:
        """True where the longest run of this unit so far, times RUN_MARGIN, ends in the time left."""
        known = max((run.generation_us for run in self.measured.of(unit)), default=0)
        return us_to_s(known) * RUN_MARGIN < self.left_s()

    def run(self, engines: dict[str, CellProcess], unit: Unit, repeat: int) -> None:
        """Run one repeat of a unit and record it; an engine that fails is taken out of `engines`."""
        name, kind = unit
        try:
            done = engines[name].measure(
                kind, lambda _: None, max(0.1, min(self.study.run_deadline_s, self.left_s()))
            )
        except EngineFailed as error:
            del engines[name]
            self.fail(name, error)
            return
        self.keep(
            RunRecord(
                session=self.number,
                cell=name,
                kind=kind,
                repeat=repeat,
                generation_us=done.generation_us,
                sampled_tokens=done.sampled_tokens,
                counters=done.counters,
                warnings=done.warnings,
            )
        )
        speed = tokens_per_s(done.sampled_tokens, us_to_s(done.generation_us)) or 0.0
        lost = done.counters["preemptions"]
        by = "" if kind == "ours" else " by LLM.generate alone"
        self.say(f"block {repeat + 1} {name}{by}: {speed:,.1f} tokens/s, {lost} preemptions")


def run_study(path: Path, host: StudyHost) -> Measurements:
    """Run what is left of a study, then write results, table and receipt.

    Args:
        path: the study file; a copy of it goes into the results folder.

    Returns all measurements. The failure of a cell is recorded and not raised. Raises InputRefused where the
    folder holds another study, and what `host.command` raises without an engine environment.
    """
    study = load_study(path)
    for folder in (host.out, host.work):
        folder.parent.mkdir(parents=True, exist_ok=True)
        make_folder(folder)
    _place_study(path, host.out / STUDY)
    session = _Session(study, host)
    pending = [[cell for cell in batch if session.pending(cell)] for batch in study.batches()]
    if any(pending):
        model = host.model(study)
        for batch in pending:
            if batch and session.left_s() > 0:
                session.run_batch(batch, model)
    write_study_bundle(host.out, study, session.measured, noted_at_s=int(time.time()))
    return session.measured


def _place_study(path: Path, place: Path) -> None:
    """Copy the study file to its results unless it is there. Raises InputRefused on another one."""
    text = path.read_bytes()
    if not place.exists():
        write_new(place, text)
    elif place.read_bytes() != text:
        raise InputRefused(
            f"{place} is another study file", need=f"the bytes of {path}", do="use a fresh folder"
        )


def _main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m fitladder.study.run", description=__doc__)
    parser.add_argument("study", type=Path, help="the study file")
    parser.add_argument("--out", type=Path, required=True, help="where measurements, results and receipt go")
    parser.add_argument(
        "--work", type=Path, required=True, help="scratch: logs, requests, a weightless model"
    )
    parser.add_argument(
        "--models", type=Path, default=Path(), help="where a study's model folder is looked for"
    )
    parser.add_argument("--locks", type=Path, help="folder of engine locks, where one was installed")
    parser.add_argument("--engine-python", type=Path, default=Path(sys.executable))
    parser.add_argument("--stop-after-s", type=float, help="start no run that would end later than this")
    asked = parser.parse_args(words)
    try:
        host = StudyHost(
            out=asked.out.absolute(),
            work=asked.work.absolute(),
            command=lambda: cell_command(asked.engine_python),
            models=asked.models.absolute(),
            locks=None if asked.locks is None else asked.locks.absolute(),
            stop_after_s=asked.stop_after_s,
        )
        run_study(asked.study, host)
    except FitladderError as error:
        sys.stderr.write(f"study: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
