"""Speeds from counts: the live cells, and what a fit may not be made of."""

import json
from pathlib import Path

import pytest

from fitladder.capacity.admission import GROUPED_START_COST_STEPS
from fitladder.capacity.pool import Pool
from fitladder.capacity.simulator import Request, SimulatedRun, simulate
from fitladder.capacity.step_time import Measured, StepTime, fit_step_time
from fitladder.errors import InputRefused
from fitladder.records.engine_facts import EngineFacts
from fitladder.study.plan import load_study
from fitladder.study.predict import simulate_cell

STUDIES = Path(__file__).parents[3] / "data/studies"

CELL = [Request(983, 3_072)] * 48
LIVE = StepTime(base_s=0.0048, per_sequence_s=0.00015)


def run(width: int) -> SimulatedRun:
    return simulate(CELL, Pool(229, 528, 3), max_num_seqs=width, max_num_batched_tokens=32_768)


@pytest.mark.parametrize(("width", "tokens_per_s"), [(64, 2_877.5), (19, 2_221.8)])
def test_live_speeds_within_one_percent(width: int, tokens_per_s: float) -> None:
    assert LIVE.tokens_per_s(run(width)) == pytest.approx(tokens_per_s, rel=0.01)


def test_a_fit_returns_what_made_the_cells() -> None:
    truth = StepTime(0.005, 0.0001, 0.00002)
    cells = [Measured(run(width), truth.seconds(run(width))) for width in (64, 19, 8, 4)]
    fitted = fit_step_time(cells)
    assert fitted.base_s == pytest.approx(truth.base_s)
    assert fitted.per_sequence_s == pytest.approx(truth.per_sequence_s)
    assert fitted.per_prefill_token_s == pytest.approx(truth.per_prefill_token_s)


def test_two_cells_do_with_the_prefill_given() -> None:
    truth = StepTime(0.005, 0.0001, 0.00002)
    sizes = (1, 2, 4, 8, 16, 19)
    padded = [Measured(run(width), truth.seconds(run(width), sizes), sizes) for width in (19, 8)]
    fitted = fit_step_time(padded, per_prefill_token_s=0.00002)
    assert fitted.base_s == pytest.approx(0.005)
    assert fitted.per_sequence_s == pytest.approx(0.0001)


def h200_cells() -> list[tuple[str, Measured]]:
    """Every run with a graph for each width and no late compilation, of the two measured H200 studies."""
    found = []
    for name in ("h200_qwen35_4b", "h200_qwen35_4b_admission"):
        study = load_study(STUDIES / name / "study.yaml")
        measured = json.loads((STUDIES / name / "measurements.json").read_text())
        for engine in measured["engines"]:
            cell = study.cell(engine["cell"])
            if cell.capture_sizes is None:
                continue
            run = simulate_cell(study, cell, EngineFacts.model_validate_json(json.dumps(engine["facts"])))
            found += [
                (cell.name, Measured(run, one["generation_us"] / 1e6, cell.capture_sizes))
                for one in measured["runs"]
                if (one["cell"], one["kind"], one["warnings"]) == (cell.name, "ours", [])
            ]
    return found


def test_what_a_prefill_step_costs_explains_the_h200_cells() -> None:
    """55 ms, nine decode steps: without the term, spaced admission comes out too fast."""
    cells = h200_cells()
    assert len(cells) == 17
    plain, whole = (fit_step_time([one for _, one in cells], prefill_steps=on) for on in (False, True))
    assert whole.per_prefill_step_s / whole.base_s == pytest.approx(GROUPED_START_COST_STEPS, abs=1.5)
    for name, one in cells:
        assert whole.seconds(one.run, one.capture_sizes) == pytest.approx(one.seconds, rel=0.06), name
    (spaced, *_), errors = [one for name, one in cells if "-spaced-" in name], []
    for fitted in (plain, whole):
        errors.append(abs(fitted.seconds(spaced.run, spaced.capture_sizes) / spaced.seconds - 1))
    assert errors[1] < errors[0]


def test_grouped_starts_are_expected_to_pay_on_the_h200() -> None:
    study = load_study(STUDIES / "h200_qwen35_4b_grouped" / "study.yaml")
    step = fit_step_time([one for _, one in h200_cells()], prefill_steps=True)
    measured = json.loads((STUDIES / "h200_qwen35_4b_admission" / "measurements.json").read_text())
    facts = measured["engines"][0]["facts"]
    seconds = []
    for cell in study.cells:
        live = EngineFacts.model_validate_json(json.dumps(facts | {"max_num_seqs": cell.width}))
        run = simulate_cell(study, cell, live)
        seconds.append(step.seconds(run, cell.capture_sizes or ()))
        if cell.admission == "spaced_groups":
            assert (run.steps, run.prefill_steps, run.preemptions) == (4_605, 14, 0)
    assert seconds[0] / seconds[1] == pytest.approx(1.046, abs=0.01)


def test_padding_costs_the_next_graph() -> None:
    wave = run(19)  # its last wave is 10 wide and replays the 16-wide graph
    assert LIVE.seconds(wave, (1, 2, 4, 8, 16, 19)) - LIVE.seconds(wave) == pytest.approx(3_072 * 6 * 0.00015)


def test_cells_that_do_not_determine_a_fit_are_refused() -> None:
    one = Measured(run(19), 66.0)
    for cells in ([], [one], [one, one]):
        with pytest.raises(InputRefused, match="cells that differ in width"):
            fit_step_time(cells, per_prefill_token_s=0.0)
    with pytest.raises(InputRefused, match="without duration"):
        fit_step_time([Measured(run(19), 0.0)])
    with pytest.raises(InputRefused, match="negative term"):
        fit_step_time([Measured(run(64), 90.0), Measured(run(19), 30.0)], per_prefill_token_s=0.0)


def test_prefill_is_fitted_or_given_never_both() -> None:
    cells = [Measured(run(width), LIVE.seconds(run(width))) for width in (64, 19, 8, 4)]
    with pytest.raises(InputRefused, match="prefill tokens given"):
        fit_step_time(cells, per_prefill_token_s=0.0, prefill_steps=True)


def test_a_run_that_is_all_prefill_leaves_nothing_for_its_steps() -> None:
    token_s = 0.0005
    cells = [Measured(run(width), token_s * run(width).prefilled_tokens) for width in (64, 19)]
    assert fit_step_time(cells, per_prefill_token_s=token_s) == StepTime(0.0, 0.0, token_s)
