"""Seconds of a simulated run: a step costs a base, and something for each sequence in it.

seconds = base * steps + per_sequence * sum(width) + per_prefill_token * prefilled tokens, and where known
+ per_prefill_step * steps that prefill, which replay no graph. The base is the weights' trip through the GPU;
widths count as padded to the next captured graph. Pure: measurements come from a study.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fitladder.capacity.capture_coverage import padded_width
from fitladder.capacity.simulator import SimulatedRun
from fitladder.errors import InputRefused

__all__ = ["Measured", "StepTime", "fit_step_time"]


@dataclass(frozen=True)
class StepTime:
    """Seconds of a step, of each sequence in it, of each token prefilled, of each step that prefills."""

    base_s: float
    per_sequence_s: float
    per_prefill_token_s: float = 0.0
    per_prefill_step_s: float = 0.0

    def seconds(self, run: SimulatedRun, capture_sizes: Sequence[int] = ()) -> float:
        """Generation seconds of a run whose batches replay graphs of these sizes (none: unpadded)."""
        steps, wide, prefilled, prefills = _terms(run, capture_sizes)
        decoded = self.base_s * steps + self.per_sequence_s * wide
        return decoded + self.per_prefill_token_s * prefilled + self.per_prefill_step_s * prefills

    def tokens_per_s(self, run: SimulatedRun, capture_sizes: Sequence[int] = ()) -> float:
        """Sampled tokens a second."""
        return run.sampled_tokens / self.seconds(run, capture_sizes)


@dataclass(frozen=True)
class Measured:
    """A run as simulated, and the seconds its live counterpart took, with a graph for every width."""

    run: SimulatedRun
    seconds: float
    capture_sizes: tuple[int, ...] = ()


def _terms(run: SimulatedRun, capture_sizes: Sequence[int]) -> tuple[int, int, int, int]:
    wide = sum(padded_width(width, capture_sizes) * steps for width, steps in run.width_steps)
    return run.steps, wide, run.prefilled_tokens, run.prefill_steps


def fit_step_time(
    cells: Sequence[Measured], *, per_prefill_token_s: float | None = None, prefill_steps: bool = False
) -> StepTime:
    """Least squares over measured cells of one machine and model, each weighted by 1 / seconds.

    With `per_prefill_token_s` given, two cells of different width are enough; without it three, and four with
    `prefill_steps`, which asks what a step that prefills costs beyond its tokens. Raises InputRefused where
    the cells do not determine the terms, or where one comes out negative.
    """
    if prefill_steps and per_prefill_token_s is not None:
        raise InputRefused(
            "step time", got="prefill tokens given", need="both prefill terms fitted, or one given"
        )
    if any(not cell.seconds > 0 for cell in cells):
        raise InputRefused("step time", got="a cell without duration", need="positive seconds")
    terms = np.array([_terms(cell.run, cell.capture_sizes) for cell in cells], dtype=float).reshape(-1, 4)
    measured = np.array([cell.seconds for cell in cells], dtype=float)
    known = per_prefill_token_s or 0.0
    explained = terms[:, : 4 if prefill_steps else 3 if per_prefill_token_s is None else 2]
    unknown, scale = explained.shape[1], explained.max(axis=0, initial=1.0)
    solution, _, rank, _ = np.linalg.lstsq(
        explained / scale / measured[:, None], 1.0 - known * terms[:, 2] / measured, rcond=1e-6
    )
    if rank < unknown:
        need = f"{unknown} cells that differ in width"
        raise InputRefused("step time", got=f"{len(cells)} cells of rank {rank}", need=need)
    base, per_sequence, *prefill = (float(value) for value in solution / scale)
    if min(base, per_sequence, *prefill) < 0:
        raise InputRefused(
            "step time",
            got=f"a negative term: {base:.3g} s, {per_sequence:.3g} s a sequence",
            need="cells that a + b * width explains",
        )
    return StepTime(base, per_sequence, *(prefill or (known,)))
