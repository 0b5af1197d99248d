"""`fitladder audit FILE...|EXPERIMENT`: loops in token ids.

Files: periodic loops of anyone's token lists. A registered experiment: its verified bundles, audited again in
a process that the kernel keeps from everything else; so nothing that could look is imported before the seal.
"""

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from fitladder.canonical import MAX_RATE_PLACES, Rate
from fitladder.cli.options import DataDir, Json, Params
from fitladder.errors import UsageError
from fitladder.records.settings import LoopRule
from fitladder.registry.load import load_registry
from fitladder.sandbox.content_blind import seal_process

__all__ = ["audit"]

Column = Annotated[
    str | None, typer.Option("--column", help="Where the ids are, dotted: token_ids, outputs.*.token_ids.")
]
STDIN = "-"
MAX_TOKEN_ID = 2**31 - 1


def audit(
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE|EXPERIMENT",
            help="JSON Lines, JSON, Parquet, also .gz or .zst; a folder; -; or an id.",
        ),
    ],
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Further files and folders.")
    ] = None,
    *,
    column: Column = None,
    id_column: Annotated[
        str | None, typer.Option("--id-column", help="What names a row; `id`, or its number, if left out.")
    ] = None,
    finish_column: Annotated[
        str | None,
        typer.Option(
            "--finish-column", help="Why a row ended; a finish_reason next to the ids, if left out."
        ),
    ] = None,
    pad_id: Annotated[int | None, typer.Option("--pad-id", help="An id that pads the end of rows.")] = None,
    close_ids: Annotated[
        str | None, typer.Option("--close-ids", help="Ids that a forced close writes, in order: 7,8,9.")
    ] = None,
    eos_ids: Annotated[
        str | None, typer.Option("--eos-ids", help="Ids that end a row by itself: 2,151645.")
    ] = None,
    tail: Annotated[int, typer.Option("--tail", help="How many ids at the end must repeat.")] = 8192,
    max_period: Annotated[int, typer.Option("--max-period", help="The longest period searched.")] = 2048,
    min_match: Annotated[str, typer.Option("--min-match", help="Share of ids that must match.")] = "0.99",
    report: Annotated[
        Path | None, typer.Option("--report", help="Write the loop page to this .html file, too.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write a record a row to this .jsonl or .parquet file.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say which rule found what, row by row.")
    ] = False,
    processes: Annotated[
        int | None, typer.Option("--processes", min=1, help="Workers; every processor for much input.")
    ] = None,
    params: Params = Path("params.yaml"),
    data: DataDir = Path("data"),
    as_json: Json = False,
) -> None:
    """Loops in token ids: at the end of rows that were cut, and anywhere in a row.

    fitladder audit outputs.jsonl --column outputs.*.token_ids --id-column request_id --report loops.html
    """
    targets = [target, *(more or ())]
    path = Path(target)
    is_file = column is not None or more or target == STDIN or path.exists()
    if not is_file and not path.suffix and params.exists():
        experiment = load_registry(params).experiment(target)
        seal = seal_process(data.absolute(), target)
        print_audits: Any = importlib.import_module("fitladder.cli.audit_experiment").print_audits
        print_audits(experiment, data.absolute(), seal, as_json=as_json)
        return
    if not is_file:
        raise UsageError(
            f"no file {target!r}", need="a .jsonl or .parquet file", do="name its id list with --column"
        )
    names = {"--column": column, "--id-column": id_column, "--finish-column": finish_column}
    for option, typed in names.items():
        if typed == "":
            raise UsageError(option, got="nothing", need="a name")
    resolved = {Path(each).resolve() for each in targets}
    if report is not None and (report.suffix != ".html" or report.resolve() in resolved):
        raise UsageError("--report", got=repr(str(report)), need="an .html file other than the one audited")
    if out is not None and (out.suffix not in (".jsonl", ".parquet") or out.resolve() in resolved):
        raise UsageError(
            "--out", got=repr(str(out)), need="a .jsonl or .parquet file other than those audited"
        )
    audit_files: Any = importlib.import_module("fitladder.cli.audit_file").audit_files
    audit_files(
        targets,
        column=column or "token_ids",
        id_column=id_column,
        finish_column=finish_column,
        rule=_rule(tail, max_period, min_match),
        pad_id=None if pad_id is None else _ids("--pad-id", str(pad_id))[0],
        close_ids=_ids("--close-ids", close_ids),
        eos_ids=_ids("--eos-ids", eos_ids),
        report=report,
        out=out,
        as_json=as_json,
        explain=explain,
        processes=processes,
    )


def _ids(option: str, text: str | None) -> tuple[int, ...]:
    """Ids that an option lists. Raises UsageError naming it."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and int(part) <= MAX_TOKEN_ID for part in parts):
        raise UsageError(
            option, got=repr(text), need="token ids from 0 below 2**31, with commas between them"
        )
    return tuple(map(int, parts))


def _rule(tail: int, max_period: int, min_match: str) -> LoopRule:
    """The rule that the options state. Raises UsageError naming the option, what it got and what it takes."""
    if tail < 2:
        raise UsageError("--tail", got=tail, need="2 ids or more")
    if not 1 <= max_period <= tail // 2:
        raise UsageError(
            "--max-period", got=max_period, need=f"1 to {tail // 2}: at most half of --tail, {tail}"
        )
    try:
        rate = Rate.parse(min_match)
    except ValueError:
        rate = None
    if rate is None or not 0 < rate.value < 1:
        need = f"a decimal above 0 and below 1, at most {MAX_RATE_PLACES} places"
        raise UsageError("--min-match", got=repr(min_match), need=need)
    return LoopRule(tail_tokens=tail, max_period_tokens=max_period, min_match_rate=rate, min_budget_tokens=1)
