"""measurements.json of a study: engines as they reported themselves, runs and failures, in order.

The one file that a study writes while it runs. Records are appended and never changed.
"""

from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

from pydantic import Field

from fitladder.errors import EngineFailed, InputRefused
from fitladder.files.atomic import read_plain, replace_file
from fitladder.files.escaped_text import EscapedText
from fitladder.files.sealed_json import parse_sealed, render_sealed
from fitladder.frozen import Count, Frozen, Identifier, Sha256, Size
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts
from fitladder.study.plan import Kind, Study, Unit

__all__ = [
    "MEASUREMENTS",
    "BuildRecord",
    "FailureRecord",
    "Measurements",
    "RunRecord",
    "check_drift",
    "load_measurements",
    "parse_measurements",
    "without_path",
    "write_measurements",
]

MEASUREMENTS = "measurements.json"
SHARED_FACTS = ("engine", "engine_version", "device", "device_name")
SHARED_RUNTIME = ("python", "packages", "engine_lock_sha256", "device_driver", "cuda")


class BuildRecord(Frozen):
    """The engine of one cell as built in one session (one call of `run_study`)."""

    session: Count
    cell: str
    facts: EngineFacts
    runtime: RuntimeFacts


class RunRecord(Frozen):
    """One run of the whole workload.

    Counters are differences over the run; of a `bare` run only preemptions are counted.
    """

    session: Count
    cell: str
    kind: Kind
    repeat: Size
    generation_us: Count
    sampled_tokens: Count
    counters: dict[str, Size]
    warnings: tuple[EscapedText, ...]


class FailureRecord(Frozen):
    """Reason why a cell had no engine, or lost it, in a session."""

    session: Count
    cell: str
    reason: Annotated[EscapedText, Field(min_length=1)]


class Measurements(Frozen):
    """Everything measured so far, in the order in which it happened."""

    schema_version: Literal[1]
    study_id: Identifier
    study_sha256: Sha256
    engines: tuple[BuildRecord, ...]
    runs: tuple[RunRecord, ...]
    failures: tuple[FailureRecord, ...]

    @property
    def session(self) -> int:
        """Number of the last session, 0 before the first."""
        sessions = [one.session for one in self.engines] + [one.session for one in self.failures]
        return max(sessions, default=0)

    def of(self, unit: Unit) -> list[RunRecord]:
        """The runs of a unit: a cell, by our loop or by `LLM.generate` alone."""
        return [run for run in self.runs if (run.cell, run.kind) == unit]

    def has(self, unit: Unit, repeat: int) -> bool:
        """True where this repeat of the unit was run."""
        return any(run.repeat == repeat for run in self.of(unit))


def load_measurements(folder: Path, study: Study) -> Measurements:
    """Measurements in a folder; empty ones where it has none.

    Raises InputRefused where they are of another study file, BundleTampered where the file is damaged.
    """
    path = folder / MEASUREMENTS
    if not path.exists():
        return Measurements(
            schema_version=1,
            study_id=study.study_id,
            study_sha256=study.sha256,
            engines=(),
            runs=(),
            failures=(),
        )
    return parse_measurements(read_plain(path), study, where=str(path))


def parse_measurements(data: bytes, study: Study, *, where: str) -> Measurements:
    """Measurements from the bytes of a file.

    Args:
        study: of which they must be, each run being one that it asks for, with all its tokens.
        where: path that refusals name.

    Raises as `load_measurements`.
    """
    found = parse_sealed(Measurements, data, where=where)
    if (found.study_id, found.study_sha256) != (study.study_id, study.sha256):
        raise InputRefused(
            f"{where} was measured under another study file",
            got=f"{found.study_id} {found.study_sha256}",
            need=f"{study.study_id} {study.sha256}",
            do="use a fresh folder",
        )
    units = {(cell.name, kind): cell for cell in study.cells for kind in cell.kinds}
    seen: set[tuple[Unit, int]] = set()
    for run in found.runs:
        unit = (run.cell, run.kind)
        if unit not in units or run.repeat >= study.repeats or (unit, run.repeat) in seen:
            raise InputRefused(
                f"{where}: a run", got=f"{unit} repeat {run.repeat}", need="each asked run once"
            )
        need = units[unit].samples * study.workload.sampled_tokens
        if run.sampled_tokens != need:
            raise InputRefused(f"{where}: {run.cell}", got=f"{run.sampled_tokens} tokens", need=need)
        seen.add((unit, run.repeat))
    return found


def check_drift(measured: Measurements, record: BuildRecord) -> None:
    """Refuse an engine that differs from those measured before, in this or an earlier session.

    Version, device, packages, lock file and driver must be those of all engines; every other fact but the
    load time must be that of the cell's own earlier engines. Raises EngineFailed naming the first difference.
    """
    for earlier in measured.engines:
        pairs = [
            (name, getattr(earlier.facts, name), getattr(record.facts, name))
            for name in EngineFacts.model_fields
            if name in SHARED_FACTS or (earlier.cell == record.cell and name != "load_s")
        ]
        pairs += [
            (name, getattr(earlier.runtime, name), getattr(record.runtime, name)) for name in SHARED_RUNTIME
        ]
        for name, need, got in pairs:
            if got != need:
                raise EngineFailed(
                    f"{record.cell}: {name} is not as in session {earlier.session}",
                    got=_difference(got, need),
                    need=_difference(need, got),
                    do="measure in a fresh folder",
                )


def _difference(value: Any, other: Any) -> Any:
    """Those entries of a mapping that another has not; any other value as it is."""
    if isinstance(value, dict) and isinstance(other, dict):
        return {key: one for key, one in value.items() if key not in other or other[key] != one}
    return value


def without_path(facts: EngineFacts, model: str) -> EngineFacts:
    """The facts with the model folder named by its last part, so that no path of a machine is published."""
    name = PurePath(model).name

    def named(values: dict[str, Any]) -> dict[str, Any]:
        return {key: name if value == model else value for key, value in values.items()}

    return facts.model_copy(
        update={
            "requested_args": named(facts.requested_args),
            "resolved_args": named(facts.resolved_args),
        }
    )


def write_measurements(folder: Path, measurements: Measurements) -> None:
    """Replace the file by one with these measurements, whole or not at all."""
    replace_file(folder / MEASUREMENTS, render_sealed(measurements))
