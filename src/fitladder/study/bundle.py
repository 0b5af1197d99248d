"""Study folder: study file, measurements, results and table, and a receipt with the digest of each.

`verify_study` reads every byte, derives results and table again from the measurements, and refuses on the
first difference.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from fitladder.canonical import sha256_bytes
from fitladder.errors import BundlePartial, BundleTampered
from fitladder.files.atomic import read_plain, replace_file
from fitladder.files.file_record import FileRecord, file_record_at, file_record_of
from fitladder.files.sealed_json import parse_sealed, render_sealed
from fitladder.frozen import Frozen, Identifier, Sha256, Size
from fitladder.study.measurements import MEASUREMENTS, Measurements, parse_measurements
from fitladder.study.plan import Study, parse_study
from fitladder.study.results import StudyResults, analyse
from fitladder.study.table import render_table

__all__ = ["RECEIPT", "STUDY", "StudyReceipt", "VerifiedStudy", "verify_study", "write_study_bundle"]

STUDY = "study.yaml"
RESULTS = "results.json"
TABLE = "table.md"
RECEIPT = "receipt.json"
BOUND = (STUDY, MEASUREMENTS, RESULTS, TABLE)


class StudyReceipt(Frozen):
    """receipt.json: files and counts after a session, written last. A later session replaces it."""

    schema_version: Literal[1]
    study_id: Identifier
    study_sha256: Sha256
    files: dict[str, FileRecord]
    cells: Size
    cells_complete: Size
    runs: Size
    failures: Size
    sampled_tokens: Size
    generation_us: Size
    noted_at_s: Size = Field(description="wall clock, a note")


@dataclass(frozen=True)
class VerifiedStudy:
    """A study folder in which every figure follows from the measurements."""

    study: Study
    measurements: Measurements
    results: StudyResults
    receipt: StudyReceipt


def write_study_bundle(
    folder: Path, study: Study, measured: Measurements, *, noted_at_s: int
) -> StudyReceipt:
    """Derive results and table from the measurements, write them, then the receipt.

    Args:
        folder: holds the study file and the measurements already.
        noted_at_s: wall clock, a note in the receipt.
    """
    results = analyse(study, measured)
    replace_file(folder / RESULTS, render_sealed(results))
    replace_file(folder / TABLE, render_table(study, results).encode())
    files = {name: file_record_at(folder / name) for name in BOUND}
    receipt = _receipt(study, measured, results, files, noted_at_s)
    replace_file(folder / RECEIPT, render_sealed(receipt))
    return receipt


def verify_study(folder: Path) -> VerifiedStudy:
    """Verify a study folder.

    Raises BundlePartial without a receipt, BundleTampered naming the file that differs from the receipt or
    does not follow from the measurements, and what `parse_study` and `parse_measurements` raise.
    """
    path = folder / RECEIPT
    if not path.exists():
        raise BundlePartial(f"{folder} has no receipt", need=RECEIPT, do="run the study")
    receipt = parse_sealed(StudyReceipt, read_plain(path), where=str(path))
    data = {name: read_plain(folder / name) for name in BOUND}
    files = {name: file_record_of(content) for name, content in data.items()}
    for name in BOUND:
        if receipt.files.get(name) != files[name]:
            raise BundleTampered(f"{folder / name}", got=files[name].sha256, need="the receipt's file")
    study = parse_study(_text(data[STUDY], folder / STUDY), where=str(folder / STUDY))
    measured = parse_measurements(data[MEASUREMENTS], study, where=str(folder / MEASUREMENTS))
    results = analyse(study, measured)
    derived = {RESULTS: render_sealed(results), TABLE: render_table(study, results).encode()}
    for name, need in derived.items():
        if data[name] != need:
            raise BundleTampered(
                f"{folder / name} does not follow from the measurements",
                got=files[name].sha256,
                need=sha256_bytes(need),
                do=f"`fitladder study run {folder.name}` derives it again, if only the version changed",
            )
    if receipt != _receipt(study, measured, results, files, receipt.noted_at_s):
        raise BundleTampered(f"{path} does not fit its files", need="counts and digests of these files")
    return VerifiedStudy(study, measured, results, receipt)


def _text(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise BundleTampered(f"{path}", got=failure.reason, need="UTF-8") from failure


def _receipt(
    study: Study, measured: Measurements, results: StudyResults, files: dict[str, FileRecord], noted_at_s: int
) -> StudyReceipt:
    return StudyReceipt(
        schema_version=1,
        study_id=study.study_id,
        study_sha256=study.sha256,
        files=files,
        cells=len(study.cells),
        cells_complete=sum(cell.state == "complete" for cell in results.cells),
        runs=len(measured.runs),
        failures=len(measured.failures),
        sampled_tokens=results.sampled_tokens,
        generation_us=sum(run.generation_us for run in measured.runs),
        noted_at_s=noted_at_s,
    )
