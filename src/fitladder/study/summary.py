"""Sentences that say what a study's results show and what they do not. Pure.

They are part of a study's table, whose bytes are verified: another wording makes published studies fail.
"""

from fitladder.capacity.capture_coverage import render_widths, uncovered_widths
from fitladder.study.plan import Cell, Study
from fitladder.study.results import CellResult, StudyResults
from fitladder.study.statistics import Interval

__all__ = ["cell_label", "render_interval", "summary_lines"]


def cell_label(cell: Cell) -> str:
    """Factors of a cell in words, for tables and charts."""
    graphs = {"exact": "exact graphs", "implicit": "implicit graphs", "none": "no graphs"}[cell.capture]
    admission = "" if cell.admission == "worst_case" else f", {cell.admission.replace('_', ' in ')}"
    return f"{cell.width} wide, {graphs}, {cell.pool_blocks} blocks{admission}, {cell.samples} samples"


def render_interval(interval: Interval, digits: int) -> str:
    """Text of an interval: `2.802 (2.795 to 2.811)`, or the number of repeats where they are too few."""
    text = f"{interval.value:,.{digits}f}"
    if interval.low is None or interval.high is None:
        return f"{text} ({interval.repeats} repeats, no interval)"
    return f"{text} ({interval.low:,.{digits}f} to {interval.high:,.{digits}f})"


def summary_lines(study: Study, results: StudyResults) -> list[str]:
    """The sentences: question, ratios, cells, simulator, overhead, and limits of the study."""
    lines = [study.question]
    for one in results.ratios:
        pair = f"{one.comparison.numerator} over {one.comparison.denominator}"
        if one.ratio is None:
            lines.append(f"{one.comparison.shows}: not measured ({pair}).")
        else:
            times = render_interval(one.ratio, 3)
            lines.append(f"{one.comparison.shows}: {times} times the tokens a second ({pair}).")
    for cell in results.cells:
        lines += _cell_lines(cell)
    lines += _simulator_lines(results)
    lines += _overhead_lines(results)
    if not results.complete:
        missing = [cell.name for cell in results.cells if cell.state != "complete"]
        lines.append(f"Not complete: {', '.join(missing)}.")
    if results.sessions > 1:
        lines.append(f"Measured in {results.sessions} sessions, with engines built anew in each.")
    lines.append(
        f"One workload on one {results.device or 'machine'}: other prompt and answer lengths give other "
        "figures. Intervals are bootstrap intervals over few repeats: spread, not certainty."
    )
    if study.model.load_format == "dummy":
        lines.append("Random weights in the model's geometry: speeds are real, texts and loops are not.")
    return lines


def _cell_lines(result: CellResult) -> list[str]:
    lines = [f"{result.name} failed: {reason}." for reason in result.failures]
    seen, live = result.observed, result.live
    if live is not None and live.graphs == "partly" and live.capture_resolved is not None:
        widths = render_widths(uncovered_widths(live.capture_resolved, result.cell.width))
        lines.append(f"{result.name} has no graph for widths {widths}: batches of these run eager.")
    if seen is None or live is None:
        return lines
    lost, again = max(seen.preemptions), max(seen.recomputed_tokens)
    if lost:
        lines.append(
            f"{result.name} demands {live.peak_blocks_demanded} of {live.usable_blocks} blocks: up to {lost} "
            f"preemptions and {again:,} recomputed tokens a run; such rows are another experiment's."
        )
    elif not live.fits:
        lines.append(
            f"{result.name} demands {live.peak_blocks_demanded} of {live.usable_blocks} blocks by the worst "
            "case and had no preemption."
        )
    if seen.late_compilations:
        lines.append(f"{result.name} reported {seen.late_compilations} late compilations in its runs.")
    return lines


def _simulator_lines(results: StudyResults) -> list[str]:
    both = [(c.observed, c.predicted) for c in results.cells if c.observed and c.predicted]
    if not both:
        return []
    exact = sum(
        set(seen.preemptions) == {said.preemptions}
        and set(seen.recomputed_tokens) == {said.recomputed_tokens}
        and set(seen.steps) == {said.steps}
        for seen, said in both
    )
    line = (
        f"The simulator, from block counts alone, had preemptions, recomputed tokens and steps exactly right "
        f"in every run of {exact} of {len(both)} cells"
    )
    errors = [
        abs(said.tokens_per_s / seen.tokens_per_s.value - 1) for seen, said in both if said.tokens_per_s
    ]
    if errors:
        line += (
            f"; the speed of {len(errors)} of them, each from the step time of the others, "
            f"within {max(errors) * 100:.1f} %"
        )
    return [line + "."]


def _overhead_lines(results: StudyResults) -> list[str]:
    return [
        f"Our loop took {render_interval(cell.overhead, 4)} times the seconds of LLM.generate alone in "
        f"{cell.name}."
        for cell in results.cells
        if cell.overhead is not None
    ]
