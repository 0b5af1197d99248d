"""Page of one throughput study: what width, graphs, pool and admission cost, each by itself.

Every figure is derived from the measurements before it is shown; a study without a receipt is shown as
not run, with its cells as they were planned.
"""

from collections.abc import Sequence
from pathlib import Path

from fitladder.report.charts.throughput import StudyCell, ThroughputPoint, factorial_chart, throughput_chart
from fitladder.report.document import (
    Block,
    Bullets,
    Callout,
    Commands,
    Document,
    Facts,
    FigureBlock,
    Para,
    Section,
    Table,
)
from fitladder.report.html import render_html
from fitladder.report.markdown import render_markdown
from fitladder.report.words import byte_size, count, no_one_may_conclude, sizes
from fitladder.study.bundle import RECEIPT, STUDY, VerifiedStudy, verify_study
from fitladder.study.plan import Study, load_study
from fitladder.study.results import CellResult, StudyResults
from fitladder.study.summary import cell_label, render_interval, summary_lines
from fitladder.study.table import COLUMNS, cell_rows

__all__ = ["build_study", "study_document", "study_folders", "study_page_name"]

LIMITS = (
    "Anything about what a model says. A study looks at speed; random weights say nothing.",
    "That other prompt and answer lengths, another device or another engine version give these ratios.",
    "That an overcommitted run may stand for a fitted one where it is faster: preempted rows are "
    "recomputed in other batches, and no registered experiment may use them.",
    "That an interval over a few repeats is a certainty. It shows spread.",
)


def study_folders(data_dir: Path) -> tuple[Path, ...]:
    """Every folder of `data/studies` that holds a study, by name."""
    return tuple(path.parent for path in sorted((data_dir / "studies").glob(f"*/{STUDY}")))


def study_page_name(folder: Path) -> str:
    """File name of a study's page; no experiment id begins like it."""
    return f"study-{folder.name}.html"


def build_study(folder: Path) -> tuple[str, str]:
    """(HTML, Markdown) of one study. Raises as study_document does."""
    document = study_document(folder)
    return render_html(document), render_markdown(document)


def study_document(folder: Path) -> Document:
    """The page of the study in this folder. Raises BundleTampered where a figure does not follow."""
    if not (folder / RECEIPT).exists():
        return _planned(load_study(folder / STUDY), folder.name)
    return _measured(verify_study(folder), folder.name)


def _planned(study: Study, name: str) -> Document:
    rows = tuple(
        (cell.name, cell_label(cell), sizes(cell.capture_sizes) if cell.capture_sizes else "none asked for")
        for cell in study.cells
    )
    return Document(
        title=study.question,
        subtitle=study.study_id,
        verdict="Not run",
        tone="open",
        lead=f"{len(study.cells)} cells, {study.repeats} repeats each, were planned; none was measured here.",
        strip=(("Study, SHA-256", study.sha256[:12]),),
        warnings=(),
        sections=(
            Section(
                "cells",
                "Cells as planned",
                (Table("Cells", ("cell", "in words", "capture sizes"), rows),),
            ),
            _limits(),
            Section("artifacts", "How to run it", (Commands(_commands(name)[1:]),)),
        ),
    )


def _measured(found: VerifiedStudy, name: str) -> Document:
    study, results = found.study, found.results
    done = sum(cell.state == "complete" for cell in results.cells)
    said = tuple(_in_words(line, results) for line in summary_lines(study, results)[1:])
    return Document(
        title=study.question,
        subtitle=study.study_id,
        verdict=f"{done} of {len(results.cells)} cells complete",
        tone="good" if results.complete else "bad",
        lead=f"{results.engine} on {results.device}; {count(results.sampled_tokens)} tokens sampled.",
        strip=(
            ("Cells", count(len(results.cells))),
            ("Repeats a cell", count(study.repeats)),
            ("Runs", count(found.receipt.runs)),
            ("Failures kept", count(found.receipt.failures)),
            ("Study, SHA-256", results.study_sha256[:12]),
        ),
        warnings=(no_one_may_conclude(LIMITS[2]),),
        sections=(
            Section("found", "What was found", (Bullets(said),)),
            Section("glance", "Results at a glance", _pictures(results.cells)),
            Section("cells", "Every cell, failed ones too", (_cell_table(found), *_step_times(found))),
            Section("ratios", "Ratios", (_ratio_table(found),)),
            _limits(),
            Section("artifacts", "Artifacts and how to re-verify them", _artifacts(found, name)),
        ),
    )


def _in_words(text: str, results: StudyResults) -> str:
    """The text with each cell's name told, in quotes, as the table tells it."""
    for cell in sorted(results.cells, key=lambda one: -len(one.name)):
        text = text.replace(cell.name, f"\u201c{cell_label(cell.cell)}\u201d")
    return text


def _pictures(cells: Sequence[CellResult]) -> tuple[Block, ...]:
    points = [
        ThroughputPoint(
            label=cell_label(cell.cell),
            width=cell.cell.width,
            tokens_per_s=cell.observed.tokens_per_s.value,
            preemptions=max(cell.observed.preemptions),
            fits=cell.live is not None and cell.live.fits,
        )
        for cell in cells
        if cell.observed
    ]
    charts = [factorial_chart([_bar(cell) for cell in cells])]
    charts += [throughput_chart(points)] if points else []
    return (FigureBlock(tuple(charts)),)


def _bar(cell: CellResult) -> StudyCell:
    seen = cell.observed
    return StudyCell(
        label=f"{cell.cell.width} wide, {cell.cell.capture}"
        + ("" if cell.cell.admission == "worst_case" else ", spaced"),
        width=cell.cell.width,
        capture=cell.cell.capture,
        pool_blocks=cell.cell.pool_blocks,
        tokens_per_s=seen.tokens_per_s.value if seen else None,
        low=seen.tokens_per_s.low if seen else None,
        high=seen.tokens_per_s.high if seen else None,
        preemptions=max(seen.preemptions) if seen else None,
        recomputed_tokens=max(seen.recomputed_tokens) if seen else None,
        repeats=seen.tokens_per_s.repeats if seen else 0,
        failed=len(cell.failures),
    )


def _cell_table(found: VerifiedStudy) -> Table:
    return Table(
        "Counts are of one run, predictions of the simulator in brackets",
        COLUMNS,
        tuple(cell_rows(found.results)),
    )


def _step_times(found: VerifiedStudy) -> tuple[Block, ...]:
    return tuple(
        Para(
            f"Step time ({fit.graphs}): {fit.base_s * 1e3:.3f} ms + {fit.per_sequence_s * 1e3:.4f} ms a "
            f"sequence + {fit.per_prefill_token_s * 1e6:.2f} us a prefilled token."
        )
        for fit in found.results.step_times
    )


def _ratio_table(found: VerifiedStudy) -> Block:
    if not found.results.ratios:
        return Callout("The study names no ratio.", "open")
    return Table(
        "Tokens a second of the first cell over those of the second",
        ("shows", "first cell", "second cell", "ratio (95 % of resamples)"),
        tuple(
            (
                one.comparison.shows,
                _in_words(one.comparison.numerator, found.results),
                _in_words(one.comparison.denominator, found.results),
                render_interval(one.ratio, 3) if one.ratio else "not measured",
            )
            for one in found.results.ratios
        ),
    )


def _limits() -> Section:
    return Section("limits", "What no one may conclude", (Bullets(LIMITS),))


def _artifacts(found: VerifiedStudy, name: str) -> tuple[Block, ...]:
    return (
        Table(
            "Files bound by the receipt",
            ("file", "size", "SHA-256"),
            tuple((file, byte_size(one.bytes), one.sha256) for file, one in found.receipt.files.items()),
        ),
        Facts((("Engine lock, SHA-256", found.results.engine_lock_sha256 or "none"),)),
        Commands(_commands(name)),
    )


def _commands(name: str) -> tuple[tuple[str, str], ...]:
    return (
        (f"fitladder study verify {name}", "derives every figure from the measurements, or refuses"),
        (f"fitladder study run {name}", "measures what is not finished yet, on the device that it names"),
    )
