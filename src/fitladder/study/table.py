"""Markdown page of a study's results: summary, a table of cells, fitted step times. Pure."""

from collections.abc import Sequence

from fitladder.study.plan import Study
from fitladder.study.results import CellResult, StudyResults
from fitladder.study.summary import cell_label, render_interval, summary_lines

__all__ = ["COLUMNS", "cell_rows", "render_table"]

COLUMNS = (
    "cell",
    "tokens a second",
    "GPU-seconds (or CPU-) a million tokens",
    "preemptions (predicted)",
    "recomputed tokens (predicted)",
    "steps (predicted)",
    "mean width",
    "tokens a second by the others' step time",
    "LLM.generate alone",
    "state",
)
NONE = "-"


def cell_rows(results: StudyResults) -> list[tuple[str, ...]]:
    """Cells as rows of text under COLUMNS. Counts are of one run, `a / b / c` where repeats differ."""
    return [_row(cell) for cell in results.cells]


def _row(result: CellResult) -> tuple[str, ...]:
    seen, said, bare = result.observed, result.predicted, result.bare_tokens_per_s
    return (
        cell_label(result.cell),
        render_interval(seen.tokens_per_s, 1) if seen else NONE,
        f"{seen.device_seconds_per_million_tokens:,.1f}" if seen else NONE,
        _counts(seen.preemptions if seen else (), said.preemptions if said else None),
        _counts(seen.recomputed_tokens if seen else (), said.recomputed_tokens if said else None),
        _counts(seen.steps if seen else (), said.steps if said else None),
        f"{seen.mean_width:.2f}" if seen else NONE,
        f"{said.tokens_per_s:,.1f}" if said and said.tokens_per_s else NONE,
        render_interval(bare, 1) if bare else NONE,
        result.state,
    )


def _counts(seen: Sequence[int], said: int | None) -> str:
    """One figure where all repeats agree, else all of them; the prediction in brackets."""
    values = seen[:1] if len(set(seen)) == 1 else seen
    measured = " / ".join(f"{value:,}" for value in values) or NONE
    return measured if said is None else f"{measured} ({said:,})"


def render_table(study: Study, results: StudyResults) -> str:
    """The page as text; its bytes are part of a study folder and verified."""
    lines = [f"# {study.study_id}", ""]
    lines += [f"- {line}" for line in summary_lines(study, results)]
    lines += ["", "| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    lines += ["| " + " | ".join(row) + " |" for row in cell_rows(results)]
    lines += [""]
    lines += [
        f"Step time ({fit.graphs}): {fit.base_s * 1e3:.3f} ms + {fit.per_sequence_s * 1e3:.4f} ms a sequence "
        f"+ {fit.per_prefill_token_s * 1e6:.2f} us a prefilled token."
        for fit in results.step_times
    ]
    lines += [
        f"{results.engine} on {results.device}, {results.sampled_tokens:,} tokens sampled, "
        f"study {results.study_sha256}."
    ]
    return "\n".join(lines) + "\n"
