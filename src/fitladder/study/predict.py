"""What did the simulator expect of each cell, and how long should it have taken by all the other cells?

Counts come from live block figures alone. Seconds need measured cells: a cell is predicted from the others of
its kind, never from itself. Cells that run some widths without a graph follow no such line. Pure.
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
    """A cell as simulated, with its graphs and the mean seconds its live runs took (None: none did)."""

    run: SimulatedRun
    graphs: Graphs
    capture_sizes: tuple[int, ...]
    seconds: float | None


def live_pool(facts: EngineFacts) -> Pool:
    """The pool as the engine reported it. Raises GateRefused where it gave no block size."""
    if facts.block_size_tokens is None:
        raise GateRefused("pool", got="no block size", need="the live block size")
    return Pool(facts.num_blocks - facts.null_blocks, facts.block_size_tokens, facts.mamba_groups)


def graphs_of(facts: EngineFacts) -> Graphs:
    """Are all widths covered by graphs, only some of them, or none?"""
    sizes = facts.capture_resolved or ()
    if not sizes or facts.enforce_eager:
        return "eager"
    return "partly" if uncovered_widths(sizes, facts.max_num_seqs) else "covered"


def simulate_cell(study: Study, cell: Cell, facts: EngineFacts) -> SimulatedRun:
    """The cell's run, block by block. Raises GateRefused where no engine with this pool could finish it."""
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
    """Base, per-sequence and per-prefill-token seconds over all measured cells with these graphs.

    Where three terms cannot be told apart, prefill is taken as free; None where not even two can.
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
    """Seconds of a cell's run by the step time of the others; None where they determine none."""
    one = cells[name]
    if one.graphs == "partly":
        return None
    others = {other: value for other, value in cells.items() if other != name}
    fitted = step_time(others, one.graphs)
    return None if fitted is None else fitted.seconds(one.run, one.capture_sizes)
