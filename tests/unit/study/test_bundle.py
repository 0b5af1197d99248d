"""A study's bundle: every byte bound, every figure derived again, forgers and accidents refused."""

import json
from pathlib import Path

import pytest

from fitladder.canonical import sha256_bytes
from fitladder.errors import BundlePartial, BundleTampered, FitladderError, InputRefused
from fitladder.files.atomic import replace_file
from fitladder.files.file_record import FileRecord
from fitladder.files.sealed_json import parse_sealed, render_sealed
from fitladder.study.bundle import StudyReceipt, verify_study
from fitladder.study.measurements import Measurements

STUDIES = Path(__file__).parents[3] / "data" / "studies"
NAMES = ("study.yaml", "measurements.json", "results.json", "table.md", "receipt.json")


@pytest.fixture
def folder(finished: Path) -> Path:
    return finished / "out"


def bind_again(folder: Path, name: str, data: bytes) -> None:
    """What a forger does: exchange a file and seal a receipt over it."""
    replace_file(folder / name, data)
    path = folder / "receipt.json"
    receipt = parse_sealed(StudyReceipt, path.read_bytes(), where="receipt")
    record = FileRecord(bytes=len(data), sha256=sha256_bytes(data))
    forged = receipt.model_copy(update={"files": receipt.files | {name: record}})
    replace_file(path, render_sealed(forged))


def test_a_bundle_holds_five_files_and_verifies(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES)
    verified = verify_study(folder)
    assert (verified.receipt.runs, verified.receipt.cells, verified.receipt.cells_complete) == (15, 4, 4)
    assert verified.receipt.sampled_tokens == 15 * 2400


@pytest.mark.parametrize("name", NAMES)
def test_one_changed_byte_anywhere_is_refused(folder: Path, name: str) -> None:
    path = folder / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(BundleTampered, match=name):
        verify_study(folder)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(BundlePartial if name == "receipt.json" else BundleTampered):
        verify_study(folder)


def test_better_results_under_a_new_seal_are_refused(folder: Path) -> None:
    results = verify_study(folder).results
    first = results.cells[0]
    assert first.observed is not None
    faster = first.observed.tokens_per_s.model_copy(update={"value": 9_999.0})
    forged = first.model_copy(update={"observed": first.observed.model_copy(update={"tokens_per_s": faster})})
    cells = (forged, *results.cells[1:])
    bind_again(folder, "results.json", render_sealed(results.model_copy(update={"cells": cells})))
    with pytest.raises(BundleTampered, match="does not follow from the measurements"):
        verify_study(folder)


def test_a_run_left_out_is_refused(folder: Path) -> None:
    path = folder / "measurements.json"
    measured = parse_sealed(Measurements, path.read_bytes(), where="m")
    bind_again(folder, path.name, render_sealed(measured.model_copy(update={"runs": measured.runs[1:]})))
    with pytest.raises(BundleTampered, match="does not follow from the measurements"):
        verify_study(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sampled_tokens": 2399}, "2399 tokens"),
        ({"repeat": 3}, "each asked run once"),
        ({"repeat": 1}, "each asked run once"),
        ({"cell": "w5-none-p14-worst_case-n12"}, "each asked run once"),
        ({"kind": "bare"}, "each asked run once"),
    ],
)
def test_runs_that_nobody_asked_for_are_refused(folder: Path, change: dict[str, object], words: str) -> None:
    path = folder / "measurements.json"
    measured = parse_sealed(Measurements, path.read_bytes(), where="m")
    index = next(
        i
        for i, run in enumerate(measured.runs)
        if run.cell == "w4-none-p14-worst_case-n12" and not run.repeat
    )
    runs = list(measured.runs)
    runs[index] = runs[index].model_copy(update=change)
    bind_again(folder, path.name, render_sealed(measured.model_copy(update={"runs": tuple(runs)})))
    with pytest.raises(InputRefused, match=words):
        verify_study(folder)


def test_another_study_file_does_not_fit_the_measurements(folder: Path) -> None:
    text = (folder / "study.yaml").read_text().replace("sampled_tokens: 200", "sampled_tokens: 201")
    bind_again(folder, "study.yaml", text.encode())
    with pytest.raises(InputRefused, match="another study file"):
        verify_study(folder)


def test_counts_of_a_receipt_are_derived_too(folder: Path) -> None:
    path = folder / "receipt.json"
    receipt = parse_sealed(StudyReceipt, path.read_bytes(), where="receipt")
    replace_file(path, render_sealed(receipt.model_copy(update={"failures": 1})))
    with pytest.raises(BundleTampered, match="does not fit its files"):
        verify_study(folder)


def test_not_a_number_is_refused(folder: Path) -> None:
    path = folder / "measurements.json"
    document = json.loads(path.read_bytes())
    document["runs"][0]["generation_us"] = float("nan")
    bind_again(folder, path.name, json.dumps(document).encode())
    with pytest.raises(FitladderError, match="NaN"):
        verify_study(folder)


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*/receipt.json")), ids=lambda path: path.parent.name)
def test_committed_results_follow_from_their_measurements(path: Path) -> None:
    verified = verify_study(path.parent)
    assert verified.receipt.runs > 0
    assert not any(
        value.startswith("/")
        for engine in verified.measurements.engines
        for value in engine.facts.requested_args.values()
        if isinstance(value, str)
    )
