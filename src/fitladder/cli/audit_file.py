"""`fitladder audit FILE`: exact periods of anyone's token lists, as a table, a document or a page."""

import importlib
from pathlib import Path
from typing import Any

import typer

from fitladder.audit.token_files import ForeignSample, audit_rows, load_rows
from fitladder.canonical import sha256_file
from fitladder.cli.options import print_json, print_table
from fitladder.errors import UsageError
from fitladder.records.settings import LoopRule

__all__ = ["print_file"]


def print_file(
    path: Path, column: str, id_column: str | None, rule: LoopRule, report: Path | None, *, as_json: bool
) -> None:
    """Audit every row of a file. Raises InputRefused, UsageError where the page cannot be written."""
    samples = audit_rows(load_rows(path, column, id_column), rule)
    if report is not None:
        _write_page(report, path, column, rule, samples)
    if as_json:
        print_json(_document(path, column, rule, samples))
    else:
        _print_samples(path, rule, samples)
        if report is not None:
            typer.echo(f"page: {report}")


def _write_page(report: Path, path: Path, column: str, rule: LoopRule, samples: list[ForeignSample]) -> None:
    # matplotlib loads only where a page is asked for
    render: Any = importlib.import_module("fitladder.report.loop_page").render_loop_page
    page = render(samples, rule, source=path.name, column=column, sha256=sha256_file(path))
    try:
        report.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{report} cannot be written", got=error.strerror, do="name another file") from error


def _totals(samples: list[ForeignSample]) -> dict[str, int]:
    loops = [sample for sample in samples if sample.period_tokens is not None]
    return {
        "samples": len(samples),
        "loops": len(loops),
        "unresolved": sum(sample.match_rate is not None for sample in samples) - len(loops),
        "shorter_than_the_tail": sum(sample.match_rate is None for sample in samples),
        "tokens": sum(sample.tokens for sample in samples),
        "tokens_after_onset": sum(sample.tokens_after_onset or 0 for sample in loops),
    }


def _document(path: Path, column: str, rule: LoopRule, samples: list[ForeignSample]) -> dict[str, Any]:
    return {
        "samples": [
            {
                "id": sample.id,
                "period_tokens": sample.period_tokens,
                "match_rate": sample.match_rate,
                "onset_token": sample.onset_token,
                "tokens": sample.tokens,
                "tokens_after_onset": sample.tokens_after_onset,
                "best_lag_tokens": sample.best_lag_tokens,
                "matched_tokens": sample.matched_tokens,
                "compared_tokens": sample.compared_tokens,
                "reason": sample.reason,
            }
            for sample in samples
        ],
        "totals": _totals(samples),
        "file": str(path),
        "column": column,
        "tail_tokens": rule.tail_tokens,
        "largest_period_searched_tokens": rule.max_period_tokens,
        "min_match_rate": str(rule.min_match_rate),
    }


def _print_samples(path: Path, rule: LoopRule, samples: list[ForeignSample]) -> None:
    totals = _totals(samples)
    rows: list[tuple[str, ...]] = [
        (
            str(sample.id),
            f"{sample.tokens:,}",
            "-" if sample.period_tokens is None else f"{sample.period_tokens:,}",
            "-" if sample.match_rate is None else f"{sample.matched_tokens}/{sample.compared_tokens}",
            "-" if sample.onset_token is None else f"{sample.onset_token:,}",
            "-" if sample.tokens_after_onset is None else f"{sample.tokens_after_onset:,}",
            sample.reason or "loop",
        )
        for sample in samples
    ]
    heads = ("id", "ids", "period", "matched", "onset", "after onset", "verdict")
    print_table(
        f"{path}: last {rule.tail_tokens:,} ids, periods 1 to {rule.max_period_tokens:,}", heads, rows
    )
    typer.echo(
        f"{totals['loops']} of {totals['samples']} loop and spent {totals['tokens_after_onset']:,} of "
        f"{totals['tokens']:,} ids after the loop began. {totals['unresolved']} unresolved: no period up to "
        f"{rule.max_period_tokens:,} was found in them, which is no proof that they do not loop. "
        f"{totals['shorter_than_the_tail']} shorter than the tail: nothing is claimed."
    )
