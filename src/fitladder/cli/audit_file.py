"""`fitladder audit FILE...`: loops in anyone's token lists, as a table, a document, a file or a page."""

import importlib
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from fitladder.audit.row_ends import EndIds
from fitladder.audit.row_pool import RowAudit, audit_sources, usable_processes
from fitladder.audit.row_sources import Source, find_sources
from fitladder.audit.row_values import Columns
from fitladder.audit.sample_files import open_samples, sample_record
from fitladder.audit.sample_totals import SampleTotals
from fitladder.audit.token_files import ForeignSample
from fitladder.canonical import sha256_bytes
from fitladder.cli.options import print_json, print_table
from fitladder.errors import UsageError
from fitladder.records.settings import LoopRule

__all__ = ["audit_files"]

MAX_PRINTED_ROWS = 1_000
REFRESH_S = 0.5


@dataclass(frozen=True)
class _Outputs:
    """Where the result goes: a page, a file of samples, a JSON document or a table, with `explain` more."""

    report: Path | None
    out: Path | None
    as_json: bool
    explain: bool


def audit_files(
    targets: Sequence[str],
    *,
    column: str,
    id_column: str | None,
    finish_column: str | None,
    rule: LoopRule,
    pad_id: int | None,
    close_ids: tuple[int, ...],
    eos_ids: tuple[int, ...],
    report: Path | None,
    out: Path | None,
    as_json: bool,
    explain: bool,
    processes: int | None,
) -> None:
    """Audit every row of the targets as the options of `fitladder audit` say.

    Raises InputRefused, or UsageError where an output cannot be written.
    """
    audit = RowAudit(Columns(column, id_column, finish_column), rule, EndIds(pad_id, close_ids, eos_ids))
    _print_files(targets, audit, _Outputs(report, out, as_json=as_json, explain=explain), processes)


def _print_files(targets: Sequence[str], audit: RowAudit, outputs: _Outputs, processes: int | None) -> None:
    kept: list[ForeignSample] = []
    totals = SampleTotals()
    with ExitStack() as stack:
        sources = stack.enter_context(find_sources(targets))
        _check_apart(sources, outputs)
        workers = usable_processes(sources) if processes is None else processes
        keep = outputs.out is None or outputs.report is not None
        try:
            writer = stack.enter_context(open_samples(outputs.out)) if outputs.out is not None else None
            for samples in _watched(audit_sources(sources, audit, workers)):
                totals.add(samples)
                if writer is not None:
                    writer.write(samples)
                if keep:
                    kept.extend(samples)
        except OSError as error:
            if outputs.out is None:
                raise
            raise UsageError(f"{outputs.out} cannot be written", got=error.strerror) from error
        if outputs.report is not None:
            _write_page(outputs.report, sources, audit, kept)
    name = targets[0] if len(targets) == 1 else f"{len(sources)} files"
    shown = kept if outputs.out is None else []
    if outputs.as_json:
        print_json(_document(name, sources, audit, totals=totals, samples=shown, out=outputs.out))
        return
    if outputs.out is None:
        _print_samples(name, audit, shown)
    if outputs.explain:
        for sample in shown[:MAX_PRINTED_ROWS]:
            typer.echo(_explained(sample))
    _print_totals(audit, totals)
    for word, path in (("page", outputs.report), ("samples", outputs.out)):
        if path is not None:
            typer.echo(f"{word}: {path}")


def _check_apart(sources: Sequence[Source], outputs: _Outputs) -> None:
    inputs = {source.path.resolve() for source in sources}
    for option, path in (("--report", outputs.report), ("--out", outputs.out)):
        if path is not None and path.resolve() in inputs:
            raise UsageError(option, got=repr(str(path)), need="a file other than those audited")


def _watched(batches: Iterator[list[ForeignSample]]) -> Iterator[list[ForeignSample]]:
    """The batches; on a terminal, standard error says how far they are."""
    if not sys.stderr.isatty():
        yield from batches
        return
    rows = tokens = 0
    began = shown = time.monotonic()
    with Console(stderr=True).status("reading") as status:
        for samples in batches:
            yield samples
            rows += len(samples)
            tokens += sum(sample.tokens + sample.padding_tokens for sample in samples)
            if time.monotonic() - shown > REFRESH_S:
                shown = time.monotonic()
                rate = tokens / (shown - began) / 1e6
                status.update(f"{rows:,} rows, {tokens:,} ids, {rate:.1f} million ids/s")


def _write_page(
    report: Path, sources: Sequence[Source], audit: RowAudit, samples: list[ForeignSample]
) -> None:
    # matplotlib loads only where a page is asked for
    render: Any = importlib.import_module("fitladder.report.loop_page").render_loop_page
    digests = [(source.sha256(), source.label) for source in sources]
    if len(sources) == 1:
        sha256 = digests[0][0]
        name = sources[0].path.name
    else:  # as sha256sum lists them
        sha256 = sha256_bytes("".join(f"{digest}  {label}\n" for digest, label in digests).encode())
        name = f"{len(sources)} files"
    page = render(
        samples,
        audit.rule,
        source=name,
        column=audit.columns.token_ids,
        sha256=sha256,
        options=_options(audit),
    )
    try:
        report.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{report} cannot be written", got=error.strerror, do="name another file") from error


def _options(audit: RowAudit) -> tuple[str, ...]:
    """The words that repeat how rows were named and how their ends were told."""
    columns, ends = audit.columns, audit.ends
    words = {
        "--id-column": columns.id,
        "--finish-column": columns.finish,
        "--pad-id": None if ends.pad_id is None else str(ends.pad_id),
        "--close-ids": ",".join(map(str, ends.close_ids)),
        "--eos-ids": ",".join(map(str, ends.eos_ids)),
    }
    return tuple(word for option, value in words.items() if value for word in (option, value))


def _document(
    name: str,
    sources: Sequence[Source],
    audit: RowAudit,
    *,
    totals: SampleTotals,
    samples: list[ForeignSample],
    out: Path | None,
) -> dict[str, Any]:
    rule = audit.rule
    return {
        "samples": [sample_record(sample) for sample in samples],
        "totals": {
            "samples": totals.all_of("rows"),
            "loops": totals.all_of("loops"),
            "unresolved": totals.all_of("unresolved"),
            "shorter_than_the_tail": totals.all_of("shorter_than_the_tail"),
            "tokens": totals.all_of("tokens"),
            "tokens_after_onset": totals.tokens_after_onset,
        },
        "ends": {kind.replace(" ", "_"): asdict(counts) for kind, counts in totals.by_kind.items()},
        "judged_rows": totals.judged_rows,
        "padding": {"rows": totals.padded_rows, "tokens": totals.padding_tokens},
        "runs_anywhere": {
            "rows": totals.all_of("rows_with_runs"),
            "runs": totals.runs,
            "ended_by_close": totals.runs_ended_by_close,
            "burned_tokens": totals.burned_tokens,
        },
        "tail_hint_tokens": totals.tail_hint_tokens,
        "file": name,
        "files": [source.label for source in sources],
        "out": None if out is None else str(out),
        "column": audit.columns.token_ids,
        "tail_tokens": rule.tail_tokens,
        "largest_period_searched_tokens": rule.max_period_tokens,
        "min_match_rate": str(rule.min_match_rate),
    }


def _print_samples(name: str, audit: RowAudit, samples: list[ForeignSample]) -> None:
    rows: list[tuple[str, ...]] = [
        (
            str(sample.id),
            f"{sample.tokens:,}",
            "-" if sample.period_tokens is None else f"{sample.period_tokens:,}",
            "-" if sample.match_rate is None else f"{sample.matched_tokens}/{sample.compared_tokens}",
            "-" if sample.onset_token is None else f"{sample.onset_token:,}",
            "-" if sample.tokens_after_onset is None else f"{sample.tokens_after_onset:,}",
            sample.end,
            f"{len(sample.runs)}, {sample.burned_tokens:,} ids" if sample.runs else "-",
            sample.reason or "loop",
        )
        for sample in samples[:MAX_PRINTED_ROWS]
    ]
    heads = ("id", "ids", "period", "matched", "onset", "after onset", "end", "runs anywhere", "verdict")
    rule = audit.rule
    print_table(
        f"{name}: last {rule.tail_tokens:,} ids, periods 1 to {rule.max_period_tokens:,}", heads, rows
    )
    if len(samples) > len(rows):
        typer.echo(f"{len(samples) - len(rows):,} further rows: --json or --out FILE has them all.")


def _explained(sample: ForeignSample) -> str:
    """Which rule found what in one row."""
    tail = sample.reason or (
        f"period {sample.period_tokens:,} from id {sample.onset_token:,}, {sample.tokens_after_onset:,} ids"
    )
    runs = "; ".join(
        f"ids {run.start_token:,} to {run.end_token:,}, period {run.period_tokens:,}, "
        f"{run.matched_tokens}/{run.compared_tokens} match"
        + (", ended by the forced close" if sample.is_ended_by_close(run) else "")
        for run in sample.runs
    )
    end = f"end: {sample.end} ({sample.end_by})"
    return f"{sample.id}: {end}. Tail rule: {tail}. Runs anywhere: {runs or 'none'}."


def _print_totals(audit: RowAudit, totals: SampleTotals) -> None:
    ends = totals.by_kind
    typer.echo(
        f"{totals.all_of('loops')} of {totals.judged_rows} loop and spent {totals.tokens_after_onset:,} of "
        f"{totals.all_of('tokens'):,} ids after the loop began. {totals.all_of('unresolved')} unresolved: no "
        f"period up to {audit.rule.max_period_tokens:,} was found in them, which is no proof that they do "
        f"not loop. {totals.all_of('shorter_than_the_tail')} shorter than the tail: nothing is claimed."
    )
    kinds = ", ".join(f"{counts.rows} {kind}" for kind, counts in ends.items() if counts.rows)
    typer.echo(f"Ends of {totals.all_of('rows')} rows: {kinds}. The tail rule leaves natural ends out.")
    if totals.padded_rows:
        typer.echo(
            f"Padding: {totals.padding_tokens:,} ids at the end of {totals.padded_rows} rows, left out."
        )
    typer.echo(
        f"Anywhere in the rows: {totals.runs} periodic runs in {totals.all_of('rows_with_runs')} of "
        f"{totals.all_of('rows')} rows, {totals.burned_tokens:,} ids; a forced close ended "
        f"{totals.runs_ended_by_close}."
    )
    tail = totals.tail_hint_tokens
    if tail is not None:
        periods = min(audit.rule.max_period_tokens, tail // 2)
        typer.echo(
            f"{sum(totals.tail_hints.values())} rows shorter than the tail repeat: "
            f"--tail {tail} --max-period {periods} finds at least {totals.tail_hints[tail]} of them."
        )
