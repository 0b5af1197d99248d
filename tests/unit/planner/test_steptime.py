"""Speeds from counts: the live cells, and what a fit may not be made of."""

import pytest

from fitladder.errors import InputRefused
from fitladder.planner.pool import Pool
from fitladder.planner.simulate import Request, SimulatedRun, simulate
from fitladder.planner.steptime import Measured, StepTime, fit_step_time

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
