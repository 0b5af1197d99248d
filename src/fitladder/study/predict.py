"""Predictions for a cell: counts from the simulator, seconds from the step time of the other cells.

Counts follow from the live block figures alone. A cell's seconds are predicted from the other measured cells
with equal graph coverage, never from itself; cells that are covered partly have no such prediction. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fitladder.capacity.admission import spaced_admission
from fitladder.capacity.capture_coverage import uncovered_widths
from fitladder.capacity.pool import Pool
from fitladder.capacity.simulator import Request, SimulatedRun, simulate
from fitladder.capacity.step_time import Measured, StepTime, fit_step_time
from fitladder.errors import FitladderError, GateRefused
from fitladder.records.engine_facts import EngineFacts
from fitladder.study.plan import Cell, Study

__all__ = [
    "Graphs", "Simulated", "graphs_of", "live_pool", "predict_seconds", "simulate_cell", "step_time",
]  # fmt: skip

Graphs = Literal["covered", "partly", "eager"]


@dataclass(frozen=True)
class Simulated:
    """A simulated cell, its graph coverage, and the mean seconds of its live runs (None without one)."""

    run: SimulatedRun
    graphs: Graphs
    capture_sizes: tuple[int, ...]
    seconds: float | None


def live_pool(facts: EngineFacts) -> Pool:
    """KV pool as the engine reported it, null block left out. Raises GateRefused without a block size."""
    if facts.block_size_tokens is None:
        raise GateRefused("pool", got="no block size", need="the live block size")
    return Pool(facts.num_blocks - facts.null_blocks, facts.block_size_tokens, facts.mamba_groups)


def graphs_of(facts: EngineFacts) -> Graphs:
    """Whether captured graphs cover all widths up to max_num_seqs, some (`partly`), or none (`eager`)."""
    sizes = facts.capture_resolved or ()
    if not sizes or facts.enforce_eager:
        return "eager"
    return "partly" if uncovered_widths(sizes, facts.max_num_seqs) else "covered"


def simulate_cell(study: Study, cell: Cell, facts: EngineFacts) -> SimulatedRun:
    """Simulate a run of the cell, block by block. Raises GateRefused where the pool cannot finish it."""
    length, lengths = study.workload.sampled_tokens, study.workload.prompt_lengths(cell.samples)
    pool = live_pool(facts)
    limits = {"max_num_seqs": facts.max_num_seqs, "max_num_batched_tokens": facts.max_num_batched_tokens}
    policy = (
        None
        if cell.admission == "worst_case"
        else spaced_admission(cell.admission, pool, lengths, max_new_tokens=length, **limits)
    )
    requests = [Request(prompt, length) for prompt in lengths]
    return simulate(requests, pool, policy=policy, max_new_tokens=length, **limits)


def step_time(cells: Mapping[str, Simulated], graphs: Graphs) -> StepTime | None:
    """Step time fitted over all measured cells with these graphs: base, per sequence, per prefill token.

    Where the cells do not determine three terms, prefill is fitted as 0; None where they do not determine
    two.
    """
    measured = [
        Measured(one.run, one.seconds, one.capture_sizes)
        for _, one in sorted(cells.items())
        if one.graphs == graphs and one.seconds is not None
    ]
    for prefill in (None, 0.0):
        try:
            return fit_step_time(measured, per_prefill_token_s=prefill)
        except FitladderError:
            continue
    return None


def predict_seconds(cells: Mapping[str, Simulated], name: str) -> float | None:
    """Seconds of a run of the cell by the step time of the others; None where they determine none."""
    one = cells[name]
    if one.graphs == "partly":
        return None
    others = {other: value for other, value in cells.items() if other != name}
    fitted = step_time(others, one.graphs)
    return None if fitted is None else fitted.seconds(one.run, one.capture_sizes)
