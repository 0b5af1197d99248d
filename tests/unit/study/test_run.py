"""Running a study on scripted cells: what is kept, what is not run again, what is not started at all."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from fitladder.errors import InputRefused
from fitladder.study.bundle import verify_study
from fitladder.study.measurements import load_measurements, write_measurements
from fitladder.study.plan import Study
from fitladder.study.process import cell_command
from fitladder.study.run import StudyHost, run_study

FITTED, OVER = "w4-none-p14-worst_case-n12", "w12-none-p14-worst_case-n12"
SPACED, BARE = "w12-none-p14-spaced-n12", "w4-exact-p14-worst_case-n12"

Hosts = Callable[..., StudyHost]


def runs(tmp_path: Path) -> list[str]:
    log = tmp_path / "runs.log"
    return log.read_text().splitlines() if log.exists() else []


def test_a_study_runs_every_unit_in_its_seeded_order(study: Study, finished: Path) -> None:
    measured = load_measurements(finished / "out", study)
    wanted = [
        f"{name} {kind}"
        for batch in study.batches()
        for repeat in range(3)
        for name, kind in study.block(batch, repeat)
    ]
    assert runs(finished) == wanted
    assert len(measured.runs) == 15
    assert not measured.failures
    assert {one.session for one in measured.engines} == {1}
    assert {one.facts.requested_args["model"] for one in measured.engines} == {"tiny"}  # no path of a machine
    assert verify_study(finished / "out").results.complete


def test_a_finished_study_starts_no_engine(study: Study, finished: Path, host: Hosts) -> None:
    first, ran = load_measurements(finished / "out", study), runs(finished)
    idle = dataclasses.replace(host(), command=lambda: cell_command(finished / "no engine here"))
    assert run_study(finished / "study.yaml", idle) == first
    assert runs(finished) == ran


def test_a_failed_cell_is_kept_with_its_reason_and_the_others_go_on(
    study_file: Path, host: Hosts, tmp_path: Path
) -> None:
    script = {FITTED: {"fail": {"build": "no memory left"}}, OVER: {"fail": {"2": "kernel died"}}}
    measured = run_study(study_file, host(script))
    reasons = {one.cell: one.reason for one in measured.failures}
    assert set(reasons) == {FITTED, OVER}
    assert "no memory left" in reasons[FITTED]
    assert "kernel died" in reasons[OVER]
    assert len(measured.of((OVER, "ours"))) == 1
    assert len(measured.of((BARE, "bare"))) == 3
    states = {cell.name: cell.state for cell in verify_study(tmp_path / "out").results.cells}
    assert (states[FITTED], states[OVER], states[BARE]) == ("failed", "incomplete", "complete")

    resumed = run_study(study_file, host())
    assert [one.reason for one in resumed.failures] == [one.reason for one in measured.failures]
    assert {one.session for one in resumed.runs if one.cell == FITTED} == {2}
    assert [one.session for one in resumed.of((OVER, "ours"))] == [1, 2, 2]
    assert len(runs(tmp_path)) == 15
    assert verify_study(tmp_path / "out").results.complete


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"device_name": "another"}, "device_name is not as in session 1: got another, need scripted"),
        ({"num_blocks": 15}, "num_blocks is not as in session 1: got 15, need 14"),
    ],
)
def test_a_study_is_not_gone_on_with_on_another_engine(
    finished: Path, study: Study, host: Hosts, changed: dict[str, object], words: str
) -> None:
    whole = load_measurements(finished / "out", study)
    left = tuple(run for run in whole.runs if (run.cell, run.repeat) != (SPACED, 2))
    write_measurements(finished / "out", whole.model_copy(update={"runs": left}))
    measured = run_study(finished / "study.yaml", host({SPACED: {"facts": changed}}))
    [failure] = measured.failures
    assert words in failure.reason
    assert len(measured.of((SPACED, "ours"))) == 2


def test_a_failed_warm_up_is_a_failed_cell(study_file: Path, host: Hosts) -> None:
    measured = run_study(study_file, host({BARE: {"fail": {"warm": "late"}}}))
    assert [one.cell for one in measured.failures] == [BARE]
    assert len(measured.runs) == 9


def test_a_hanging_run_ends_at_its_deadline(study_file: Path, host: Hosts, tmp_path: Path) -> None:
    study_file.write_text(study_file.read_text().replace("run_deadline_s: 60", "run_deadline_s: 2"))
    measured = run_study(study_file, host({BARE: {"hang": 2}}))
    [failure] = measured.failures
    assert failure.cell == BARE
    assert "passed its deadline while generating" in failure.reason
    assert len(measured.runs) == 10
    assert verify_study(tmp_path / "out").receipt.runs == 10


def test_nothing_is_started_that_cannot_end_in_time(study_file: Path, host: Hosts, tmp_path: Path) -> None:
    """Each run claims to have taken hours: after the first block there is no time for another."""
    slow = {name: {"step_us": 60_000_000} for name in (FITTED, OVER, BARE, "w12-none-p14-spaced-n12")}
    measured = run_study(study_file, host(slow, stop_after_s=60))
    assert {run.repeat for run in measured.runs} == {0}
    assert len(measured.runs) == 5
    assert not measured.failures
    assert not verify_study(tmp_path / "out").results.complete


def test_another_study_file_is_refused_in_the_same_folder(study: Study, finished: Path, host: Hosts) -> None:
    path = finished / "study.yaml"
    path.write_text(path.read_text() + "\n# a comment\n")
    with pytest.raises(InputRefused, match="another study file"):
        run_study(path, host())
    other = study.model_copy(update={"repeats": 4})
    with pytest.raises(InputRefused, match="measured under another study file"):
        load_measurements(finished / "out", other)


def test_a_cell_without_an_engine_environment_fails(study_file: Path, tmp_path: Path) -> None:
    host = StudyHost(
        out=tmp_path / "out",
        work=tmp_path / "work",
        command=lambda: [str(tmp_path / "nothing")],
        say=lambda _: None,
    )
    measured = run_study(study_file, host)
    assert len(measured.failures) == 4
    assert all("did not start" in one.reason for one in measured.failures)


def test_a_presets_weightless_model_is_written_where_the_engine_looks(study: Study, host: Hosts) -> None:
    preset = study.model.model_copy(update={"preset": "qwen3.5-4b", "folder": None})
    here = host()
    folder = Path(here.model(study.model_copy(update={"model": preset})))
    assert folder == here.work / "qwen3.5-4b"
    assert (folder / "config.json").is_file()
    assert here.model(study) == str(here.models / "tiny")
