"""Results of a study: what was measured and predicted for every cell, failed ones included.

Pure: equal studies and measurements give equal results, by which a study folder is verified.
"""

from collections.abc import Sequence
from typing import Literal

from fitladder.capacity.kv_blocks import block_rule
from fitladder.errors import GateRefused
from fitladder.frozen import Frozen, Identifier, Sha256
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.generation_time import us_to_s
from fitladder.study.measurements import Measurements, RunRecord
from fitladder.study.plan import Cell, Comparison, Study
from fitladder.study.predict import (
    Graphs,
    Simulated,
    graphs_of,
    live_pool,
    predict_seconds,
    simulate_cell,
    step_time,
)
from fitladder.study.statistics import Interval, mean_seconds, ratio_interval, significant, speed_interval

__all__ = [
    "CellResult",
    "Live",
    "Observed",
    "Prediction",
    "Ratio",
    "StepTimeFit",
    "StudyResults",
    "analyse",
]


class Live(Frozen):
    """Figures of the cell's engine as it reported them, and its demand of blocks.

    peak_blocks_demanded: of min(width, samples) sequences at their longest. fits: the pool has as many.
    """

    block_size_tokens: int
    usable_blocks: int
    mamba_groups: int
    capture_resolved: tuple[int, ...] | None
    graphs: Graphs
    peak_blocks_demanded: int
    fits: bool


class Observed(Frozen):
    """Measured figures of a cell; counts have one entry a repeat, mean_width is in sequences a step."""

    tokens_per_s: Interval
    device_seconds_per_million_tokens: float
    preemptions: tuple[int, ...]
    recomputed_tokens: tuple[int, ...]
    steps: tuple[int, ...]
    mean_width: float
    late_compilations: int


class Prediction(Frozen):
    """Simulated counts of one run, and the speed by the step time of the other cells."""

    preemptions: int
    recomputed_tokens: int
    steps: int
    mean_width: float
    peak_width: int
    peak_blocks: int
    tokens_per_s: float | None


class CellResult(Frozen):
    """One cell: measured, predicted, failed.

    overhead: seconds of our step loop over those of `LLM.generate` alone, in the same engine.
    """

    name: str
    cell: Cell
    state: Literal["complete", "incomplete", "failed"]
    live: Live | None
    observed: Observed | None
    bare_tokens_per_s: Interval | None
    overhead: Interval | None
    predicted: Prediction | None
    failures: tuple[str, ...]


class Ratio(Frozen):
    """Tokens a second of one cell over those of another; None without runs of both in one repeat."""

    comparison: Comparison
    ratio: Interval | None


class StepTimeFit(Frozen):
    """Seconds of a step, of each sequence in it and of each prefill token, over cells with equal graphs."""

    graphs: Graphs
    base_s: float
    per_sequence_s: float
    per_prefill_token_s: float


class StudyResults(Frozen):
    """results.json: the figures of a study. `sessions` counts those in which runs were measured."""

    schema_version: Literal[1]
    study_id: Identifier
    study_sha256: Sha256
    complete: bool
    engine: str | None
    device: str | None
    engine_lock_sha256: Sha256 | None
    sampled_tokens: int
    sessions: int
    cells: tuple[CellResult, ...]
    ratios: tuple[Ratio, ...]
    step_times: tuple[StepTimeFit, ...]


def analyse(study: Study, measured: Measurements) -> StudyResults:
    """Derive the results from what was measured so far, cells in the order of the study file."""
    facts = {one.cell: one.facts for one in measured.engines}
    simulated = {
        cell.name: one
        for cell in study.cells
        if cell.name in facts and (one := _simulated(study, cell, facts[cell.name], measured)) is not None
    }
    cells = tuple(_cell(study, cell, facts.get(cell.name), measured, simulated) for cell in study.cells)
    first = measured.engines[0] if measured.engines else None
    return StudyResults(
        schema_version=1,
        study_id=study.study_id,
        study_sha256=study.sha256,
        complete=all(cell.state == "complete" for cell in cells),
        engine=None if first is None else f"{first.facts.engine} {first.facts.engine_version}",
        device=None if first is None else first.facts.device_name,
        engine_lock_sha256=None if first is None else first.runtime.engine_lock_sha256,
        sampled_tokens=sum(run.sampled_tokens for run in measured.runs),
        sessions=len({run.session for run in measured.runs}),
        cells=cells,
        ratios=tuple(_ratio(study, measured, comparison) for comparison in study.comparisons),
        step_times=_step_times(simulated),
    )


def _runs(measured: Measurements, name: str, kind: Literal["ours", "bare"] = "ours") -> list[RunRecord]:
    return sorted(measured.of((name, kind)), key=lambda run: run.repeat)


def _seconds(runs: Sequence[RunRecord]) -> list[float]:
    return [us_to_s(run.generation_us) for run in runs]


def _simulated(study: Study, cell: Cell, facts: EngineFacts, measured: Measurements) -> Simulated | None:
    seconds = _seconds(_runs(measured, cell.name))
    try:
        run = simulate_cell(study, cell, facts)
    except GateRefused:  # this pool cannot finish the workload, and its engine said so itself
        return None
    return Simulated(
        run=run,
        graphs=graphs_of(facts),
        capture_sizes=facts.capture_resolved or (),
        seconds=mean_seconds(seconds) if seconds else None,
    )


def _cell(
    study: Study,
    cell: Cell,
    facts: EngineFacts | None,
    measured: Measurements,
    simulated: dict[str, Simulated],
) -> CellResult:
    runs, bare = _runs(measured, cell.name), _runs(measured, cell.name, "bare")
    tokens = cell.samples * study.workload.sampled_tokens
    done = all(len(measured.of((cell.name, kind))) == study.repeats for kind in cell.kinds)
    return CellResult(
        name=cell.name,
        cell=cell,
        state="complete" if done else "incomplete" if runs else "failed",
        live=_live(study, cell, facts) if facts is not None and cell.name in simulated else None,
        observed=_observed(cell, runs, tokens) if runs else None,
        bare_tokens_per_s=(
            speed_interval(tokens, _seconds(bare), seed=f"{cell.name} bare") if bare else None
        ),
        overhead=_paired(runs, bare, seed=f"{cell.name} overhead"),
        predicted=_predicted(cell, tokens, simulated) if cell.name in simulated else None,
        failures=tuple(one.reason for one in measured.failures if one.cell == cell.name),
    )


def _live(study: Study, cell: Cell, facts: EngineFacts) -> Live:
    pool = live_pool(facts)
    active = min(cell.width, cell.samples)
    longest = max(study.workload.prompt_lengths(cell.samples)) + study.workload.sampled_tokens - 1
    fit = block_rule(longest, pool.block_size_tokens, pool.mamba_groups, active, pool.usable_blocks)
    return Live(
        block_size_tokens=pool.block_size_tokens,
        usable_blocks=pool.usable_blocks,
        mamba_groups=pool.mamba_groups,
        capture_resolved=facts.capture_resolved,
        graphs=graphs_of(facts),
        peak_blocks_demanded=fit.required_blocks,
        fits=fit.fits,
    )


def _observed(cell: Cell, runs: Sequence[RunRecord], tokens: int) -> Observed:
    speed = speed_interval(tokens, _seconds(runs), seed=cell.name)
    steps = tuple(run.counters["steps"] for run in runs)
    return Observed(
        tokens_per_s=speed,
        device_seconds_per_million_tokens=significant(1e6 / speed.value),
        preemptions=tuple(run.counters["preemptions"] for run in runs),
        recomputed_tokens=tuple(run.counters["recomputed_tokens"] for run in runs),
        steps=steps,
        mean_width=significant(tokens * len(runs) / sum(steps)),
        late_compilations=sum(len(run.warnings) for run in runs),
    )


def _predicted(cell: Cell, tokens: int, simulated: dict[str, Simulated]) -> Prediction:
    run, seconds = simulated[cell.name].run, predict_seconds(simulated, cell.name)
    return Prediction(
        preemptions=run.preemptions,
        recomputed_tokens=run.recomputed_tokens,
        steps=run.steps,
        mean_width=significant(run.mean_width),
        peak_width=run.peak_width,
        peak_blocks=run.peak_blocks,
        tokens_per_s=None if seconds is None else significant(tokens / seconds),
    )


def _paired(upper: Sequence[RunRecord], lower: Sequence[RunRecord], *, seed: str) -> Interval | None:
    """Seconds a token of `upper` over those of `lower`, over the repeats that both have."""
    above, below = ({run.repeat: run for run in runs} for runs in (upper, lower))
    both = sorted(set(above) & set(below))
    if not both:
        return None
    return ratio_interval(
        [above[repeat].generation_us / above[repeat].sampled_tokens for repeat in both],
        [below[repeat].generation_us / below[repeat].sampled_tokens for repeat in both],
        seed=seed,
    )


def _ratio(study: Study, measured: Measurements, comparison: Comparison) -> Ratio:
    """Ratio of speeds: seconds a token of the denominator over those of the numerator."""
    fast, slow = (_runs(measured, name) for name in (comparison.numerator, comparison.denominator))
    seed = f"{comparison.numerator} {comparison.denominator}"
    return Ratio(comparison=comparison, ratio=_paired(slow, fast, seed=seed))


def _step_times(simulated: dict[str, Simulated]) -> tuple[StepTimeFit, ...]:
    kinds: tuple[Graphs, ...] = ("covered", "eager")
    return tuple(
        StepTimeFit(
            graphs=graphs,
            base_s=significant(fitted.base_s),
            per_sequence_s=significant(fitted.per_sequence_s),
            per_prefill_token_s=significant(fitted.per_prefill_token_s),
        )
        for graphs in kinds
        if (fitted := step_time(simulated, graphs)) is not None
    )
