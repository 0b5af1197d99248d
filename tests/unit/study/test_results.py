"""Figures, predictions and sentences of a study whose cells did what was simulated, or did not."""

from pathlib import Path
from typing import Any

import pytest
from support import bundles as make

from fitladder.study.measurements import (
    BuildRecord,
    FailureRecord,
    Measurements,
    RunRecord,
    load_measurements,
)
from fitladder.study.plan import Study, parse_study
from fitladder.study.predict import predict_seconds
from fitladder.study.results import StudyResults, _simulated, analyse
from fitladder.study.statistics import Interval
from fitladder.study.summary import render_interval, summary_lines
from fitladder.study.table import render_table

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
    text = "\n".join(summary_lines(study, results))
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
    text = "\n".join(summary_lines(study, analyse(study, changed)))
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
    text = "\n".join(summary_lines(study, results))
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


def test_a_cell_is_complete_with_every_repeat_of_both_ways(study: Study, measured: Measurements) -> None:
    for kind in ("ours", "bare"):
        runs = tuple(run for run in measured.runs if (run.cell, run.kind, run.repeat) != (BARE, kind, 2))
        states = {
            cell.name: cell.state for cell in analyse(study, measured.model_copy(update={"runs": runs})).cells
        }
        assert states.pop(BARE) == "incomplete"
        assert set(states.values()) == {"complete"}


def built(study: Study, name: str, width: int, blocks: int) -> Measurements:
    """One engine of this pool, and no run."""
    facts = make.facts(
        width,
        max_num_batched_tokens=2_048,
        block_size_tokens=128,
        num_blocks=blocks,
        max_model_len_tokens=512,
    )
    return Measurements(
        schema_version=1,
        study_id=study.study_id,
        study_sha256=study.sha256,
        engines=(BuildRecord(session=1, cell=name, facts=facts, runtime=make.runtime()),),
        runs=(),
        failures=(),
    )


def test_an_engine_that_cannot_finish_has_no_live_figures_and_no_prediction(study: Study) -> None:
    cells = {cell.name: cell for cell in analyse(study, built(study, FITTED, 4, 3)).cells}
    assert (cells[FITTED].live, cells[FITTED].predicted, cells[FITTED].state) == (None, None, "failed")


@pytest.mark.parametrize(("prompt", "blocks"), [(57, 4), (58, 6)])
def test_a_demand_counts_all_but_the_last_token_of_the_longest_prompt(
    text: str, prompt: int, blocks: int
) -> None:
    """256 tokens fill two blocks; the token sampled last is never stored. Two samples need no more."""
    small = parse_study(
        text.replace("[100, 103, 98]", f"[20, {prompt}]").replace(
            "{width: [4, 12], capture: none, pool_blocks: 14, admission: worst_case, samples: 12}",
            "{width: [4, 12], capture: none, pool_blocks: 14, admission: worst_case, samples: [2, 12]}",
        ),
        where="small",
    )
    name = "w4-none-p14-worst_case-n2"
    live = next(cell.live for cell in analyse(small, built(small, name, 4, 14)).cells if cell.name == name)
    assert live is not None
    assert (live.peak_blocks_demanded, live.usable_blocks, live.fits) == (blocks, 13, True)


def said(study: Study, measured: Measurements) -> list[str]:
    return summary_lines(study, analyse(study, measured))


def changed_runs(measured: Measurements, cell: str, **changes: Any) -> Measurements:
    runs = tuple(run.model_copy(update=changes) if run.cell == cell else run for run in measured.runs)
    return measured.model_copy(update={"runs": runs})


def test_late_compilations_are_said_of_their_cell_alone(study: Study, measured: Measurements) -> None:
    late = [
        line for line in said(study, changed_runs(measured, OVER, warnings=("one", "two"))) if "late" in line
    ]
    assert late == [f"{OVER} reported 6 late compilations in its runs."]  # two in each of three runs
    assert not [line for line in said(study, measured) if "late" in line]


def test_sessions_are_said_from_the_second_on(study: Study, measured: Measurements) -> None:
    assert not [line for line in said(study, measured) if "sessions" in line]
    twice = changed_runs(measured, OVER, session=2)
    assert "Measured in 2 sessions, with engines built anew in each." in said(study, twice)


def test_real_weights_are_not_called_random(text: str) -> None:
    real = parse_study(text.replace("load_format: dummy", "load_format: auto"), where="real")
    lines = said(real, built(real, FITTED, 4, 14))
    assert not [line for line in lines if "Random weights" in line]
    assert [line for line in lines if line.startswith("One workload on one cpu: ")]


def test_widths_without_a_graph_are_named(study: Study, measured: Measurements) -> None:
    def partly(one: BuildRecord) -> BuildRecord:
        facts = one.facts.model_copy(update={"enforce_eager": False, "capture_resolved": (1, 2, 4, 8)})
        return one.model_copy(update={"facts": facts}) if one.cell == OVER else one

    engines = tuple(partly(one) for one in measured.engines)
    lines = said(study, measured.model_copy(update={"engines": engines}))
    assert [line for line in lines if "no graph for widths" in line] == [
        f"{OVER} has no graph for widths 9-12: batches of these run eager."
    ]


def test_a_fitted_cell_has_nothing_said_of_its_blocks(study: Study, measured: Measurements) -> None:
    assert not [line for line in said(study, measured) if line.startswith(f"{FITTED} demands")]


def test_the_simulator_is_measured_by_the_cells_that_it_gives_a_speed(
    study: Study, measured: Measurements
) -> None:
    [line] = [line for line in said(study, measured) if line.startswith("The simulator")]
    seconds = [
        cell for cell in analyse(study, measured).cells if cell.predicted and cell.predicted.tokens_per_s
    ]
    assert f"; the speed of {len(seconds)} of them" in line
    assert line.endswith("within 0.0 %.")  # the scripted cells follow one step time
    unmeasured = measured.model_copy(update={"runs": ()})
    assert not [line for line in said(study, unmeasured) if line.startswith("The simulator")]


def test_the_largest_error_of_a_predicted_speed_is_the_one_that_is_said(
    study: Study, measured: Measurements
) -> None:
    one = next(run for run in measured.runs if run.cell == SPACED)
    slow = changed_runs(measured, SPACED, generation_us=round(1.05 * one.generation_us))
    both = [(cell.observed, cell.predicted) for cell in analyse(study, slow).cells]
    errors = [
        abs(told.tokens_per_s / seen.tokens_per_s.value - 1)
        for seen, told in both
        if seen and told and told.tokens_per_s
    ]
    assert max(errors) > min(errors) + 0.002
    [line] = [line for line in said(study, slow) if line.startswith("The simulator")]
    assert line.endswith(f"within {max(errors) * 100:.1f} %.")


def test_two_repeats_have_no_interval() -> None:
    assert render_interval(Interval(value=2.5, low=None, high=None, repeats=2), 2) == (
        "2.50 (2 repeats, no interval)"
    )
    assert render_interval(Interval(value=2.5, low=2.0, high=3.0, repeats=3), 1) == "2.5 (2.0 to 3.0)"
    for low, high in ((2.0, None), (None, 3.0)):
        half = Interval(value=2.5, low=low, high=high, repeats=3)
        assert render_interval(half, 1) == "2.5 (3 repeats, no interval)"
