"""Figures, predictions and sentences of a study whose cells did what was simulated, or did not."""

from pathlib import Path

import pytest

from fitladder.study.measured import FailureRecord, Measurements, RunRecord, load_measurements
from fitladder.study.plan import Study
from fitladder.study.predict import predict_seconds
from fitladder.study.results import StudyResults, _simulated, analyse
from fitladder.study.table import render_table
from fitladder.study.verdict import verdict

FITTED, OVER = "w4-none-p14-worst_case-n12", "w12-none-p14-worst_case-n12"
SPACED, BARE = "w12-none-p14-spaced-n12", "w4-exact-p14-worst_case-n12"
TOKENS = 12 * 200


@pytest.fixture
def measured(study: Study, finished: Path) -> Measurements:
    return load_measurements(finished / "out", study)


@pytest.fixture
def results(study: Study, measured: Measurements) -> StudyResults:
    return analyse(study, measured)


def test_counts_stand_beside_their_prediction(results: StudyResults) -> None:
    cells = {cell.name: cell for cell in results.cells}
    over, fitted, spaced = (cells[name] for name in (OVER, FITTED, SPACED))
    assert over.observed is not None
    assert over.predicted is not None
    assert over.live is not None
    assert over.observed.preemptions == (11, 11, 11)  # as on the CPU engine with these lengths and blocks
    assert over.observed.recomputed_tokens == (1863, 1863, 1863)
    assert over.observed.steps == (463, 463, 463)
    assert (over.predicted.preemptions, over.predicted.steps) == (11, 463)
    assert (over.live.peak_blocks_demanded, over.live.usable_blocks, over.live.fits) == (36, 13, False)
    assert fitted.live is not None
    assert (fitted.live.peak_blocks_demanded, fitted.live.fits) == (12, True)
    assert spaced.observed is not None
    assert spaced.observed.preemptions == (0, 0, 0)


def test_speeds_are_tokens_over_seconds(results: StudyResults) -> None:
    cells = {cell.name: cell for cell in results.cells}
    fitted = cells[FITTED].observed
    assert fitted is not None
    seconds = sum(600 * 1000 + TOKENS * 50 + number for number in (1, 2, 3)) / 3 / 1e6
    assert fitted.tokens_per_s.value == pytest.approx(TOKENS / seconds, rel=1e-5)
    assert fitted.device_seconds_per_million_tokens == pytest.approx(1e6 * seconds / TOKENS, rel=1e-5)


def test_ratio_and_overhead(results: StudyResults) -> None:
    [ratio] = results.ratios
    assert ratio.ratio is not None
    cells = {cell.name: cell for cell in results.cells}
    spaced, over = cells[SPACED].observed, cells[OVER].observed
    assert spaced is not None
    assert over is not None
    assert ratio.ratio.value == pytest.approx(spaced.tokens_per_s.value / over.tokens_per_s.value, rel=1e-5)
    assert 0.9 < ratio.ratio.value < 1  # 504 steps against 463
    overhead = cells[BARE].overhead
    assert overhead is not None
    assert overhead.value == pytest.approx(1.0, abs=1e-4)
    assert cells[FITTED].overhead is None


def test_the_verdict_says_what_was_found(study: Study, results: StudyResults) -> None:
    text = "\n".join(verdict(study, results))
    assert "Spaced against overcommitted: 0.9" in text
    assert "demands 36 of 13 blocks: up to 11 preemptions and 1,863 recomputed tokens a run" in text
    assert f"{SPACED} demands 36 of 13 blocks by the worst case and had no preemption" in text
    assert "exactly right in every run of 4 of 4 cells" in text
    assert "Random weights" in text
    assert "failed" not in text
    assert "Not complete" not in text


def test_a_wrong_prediction_is_not_called_right(study: Study, measured: Measurements) -> None:
    def shifted(run: RunRecord) -> RunRecord:
        if run.cell != OVER or run.repeat:
            return run
        return run.model_copy(update={"counters": run.counters | {"preemptions": 12}})

    changed = measured.model_copy(update={"runs": tuple(shifted(run) for run in measured.runs)})
    text = "\n".join(verdict(study, analyse(study, changed)))
    assert "exactly right in every run of 3 of 4 cells" in text
    assert "12 / 11 / 11 (11)" in render_table(study, analyse(study, changed))


def test_failed_and_missing_cells_stay_in_the_table(study: Study, measured: Measurements) -> None:
    failure = FailureRecord(session=1, cell=OVER, reason="no memory left")
    kept = {
        "engines": tuple(one for one in measured.engines if one.cell != OVER),
        "runs": tuple(run for run in measured.runs if run.cell != OVER),
        "failures": (failure,),
    }
    results = analyse(study, measured.model_copy(update=kept))
    text = "\n".join(verdict(study, results))
    assert f"{OVER} failed: " in text
    assert "no memory left" in text
    assert f"Not complete: {OVER}." in text
    assert f"Spaced against overcommitted: not measured ({SPACED} over {OVER})." in text
    page = render_table(study, results)
    assert "| 12 wide, no graphs, 14 blocks, 12 samples | - | - |" in page
    assert "| failed |" in page


def test_a_cell_is_never_predicted_from_itself(study: Study, measured: Measurements) -> None:
    facts = {one.cell: one.facts for one in measured.engines}

    def simulated(factor: float) -> float | None:
        changed = tuple(
            run.model_copy(update={"generation_us": round(run.generation_us * factor)})
            if run.cell == FITTED
            else run
            for run in measured.runs
        )
        slower = measured.model_copy(update={"runs": changed})
        cells = {cell.name: _simulated(study, cell, facts[cell.name], slower) for cell in study.cells}
        return predict_seconds({name: one for name, one in cells.items() if one is not None}, FITTED)

    assert simulated(1.0) == pytest.approx(600 * 0.001 + TOKENS * 0.00005, rel=1e-3)  # as scripted
    assert simulated(1.0) == simulated(50.0)


def test_nothing_measured_is_said_as_such(study: Study) -> None:
    nothing = Measurements(
        schema_version=1,
        study_id=study.study_id,
        study_sha256=study.sha256,
        engines=(),
        runs=(),
        failures=(),
    )
    results = analyse(study, nothing)
    assert not results.complete
    assert {cell.state for cell in results.cells} == {"failed"}
    assert "not measured" in render_table(study, results)
