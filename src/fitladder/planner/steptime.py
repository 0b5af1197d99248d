"""How long does a simulated run take? A step costs a base, and something for each sequence in it.

seconds = base * steps + per_sequence * sum(width) + per_prefill_token * prefilled tokens. The base is the
weights' trip through the GPU; widths count as padded to the next captured graph. Pure: measurements come
from a study.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fitladder.errors import InputRefused
from fitladder.planner.simulate import SimulatedRun
from fitladder.protocol.capture import padded_width

__all__ = ["Measured", "StepTime", "fit_step_time"]


@dataclass(frozen=True)
class StepTime:
    """Seconds of a step, of each sequence in it, and of each token prefilled."""

    base_s: float
    per_sequence_s: float
    per_prefill_token_s: float = 0.0

    def seconds(self, run: SimulatedRun, capture_sizes: Sequence[int] = ()) -> float:
        """Generation seconds of a run whose batches replay graphs of these sizes (none: as wide as they are)."""
        steps, wide, prefilled = _terms(run, capture_sizes)
        return self.base_s * steps + self.per_sequence_s * wide + self.per_prefill_token_s * prefilled

    def tokens_per_s(self, run: SimulatedRun, capture_sizes: Sequence[int] = ()) -> float:
        """Sampled tokens a second."""
        return run.sampled_tokens / self.seconds(run, capture_sizes)


@dataclass(frozen=True)
class Measured:
    """A run as simulated, and how long its live counterpart took; widths without a graph have no place here."""

    run: SimulatedRun
    seconds: float
    capture_sizes: tuple[int, ...] = ()


def _terms(run: SimulatedRun, capture_sizes: Sequence[int]) -> tuple[int, int, int]:
    wide = sum(padded_width(width, capture_sizes) * steps for width, steps in run.width_steps)
    return run.steps, wide, run.prefilled_tokens


def fit_step_time(cells: Sequence[Measured], *, per_prefill_token_s: float | None = None) -> StepTime:
    """Least squares over measured cells of one machine and model, each weighted by 1 / seconds.

    With `per_prefill_token_s` given, two cells of different width are enough; without it three. Raises
    InputRefused where the cells do not determine the terms, or where one comes out negative.
    """
    if any(not cell.seconds > 0 for cell in cells):
        raise InputRefused("step time", got="a cell without duration", need="positive seconds")
    terms = np.array([_terms(cell.run, cell.capture_sizes) for cell in cells], dtype=float).reshape(-1, 3)
    seconds = np.array([cell.seconds for cell in cells], dtype=float)
    unknown = 3
    if per_prefill_token_s is not None:
        seconds = seconds - per_prefill_token_s * terms[:, 2]
        terms, unknown = terms[:, :2], 2
    weight = 1.0 / np.array([cell.seconds for cell in cells], dtype=float)
    scale = terms.max(axis=0, initial=1.0)
    solution, _, rank, _ = np.linalg.lstsq((terms / scale) * weight[:, None], seconds * weight, rcond=1e-6)
    if rank < unknown:
        raise InputRefused(
            "step time",
            got=f"{len(cells)} cells of rank {rank}",
            need=f"{unknown} cells that differ in width",
        )
    values = [float(value) for value in solution / scale]
    if min(values) < 0:
        raise InputRefused(
            "step time", got=f"a negative term in {values}", need="cells that a + b*width explains"
        )
    return StepTime(*values) if unknown == 3 else StepTime(*values, per_prefill_token_s or 0.0)
