"""`fitladder audit FILE|EXPERIMENT`: finds exact loops in lists of token ids.

A file: anyone's token lists. A registered experiment: its verified bundles, audited in a process that the
kernel keeps from everything else; so nothing that could look is imported before the seal.
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


def audit(
    target: Annotated[
        str, typer.Argument(metavar="FILE|EXPERIMENT", help="A .jsonl or .parquet file, or an experiment id.")
    ],
    *,
    column: Column = None,
    id_column: Annotated[
        str | None, typer.Option("--id-column", help="What names a row; `id`, or its number, if left out.")
    ] = None,
    tail: Annotated[int, typer.Option("--tail", help="How many ids at the end must repeat.")] = 8192,
    max_period: Annotated[int, typer.Option("--max-period", help="The longest period searched.")] = 2048,
    min_match: Annotated[str, typer.Option("--min-match", help="Share of ids that must match.")] = "0.99",
    report: Annotated[
        Path | None, typer.Option("--report", help="Write the loop page to this .html file, too.")
    ] = None,
    params: Params = Path("params.yaml"),
    data: DataDir = Path("data"),
    as_json: Json = False,
) -> None:
    """Find exact loops in token ids. All rows of a file are taken as cut at their budget.

    fitladder audit outputs.jsonl --column outputs.*.token_ids --id-column request_id --report loops.html
    """
    path = Path(target)
    if column is None and not path.exists() and not path.suffix and params.exists():
        experiment = load_registry(params).experiment(target)
        seal = seal_process(data.absolute(), target)
        print_audits: Any = importlib.import_module("fitladder.cli.audit_experiment").print_audits
        print_audits(experiment, data.absolute(), seal, as_json=as_json)
        return
    if column is None and not path.exists():
        raise UsageError(
            f"no file {target!r}", need="a .jsonl or .parquet file", do="name its id list with --column"
        )
    print_file: Any = importlib.import_module("fitladder.cli.audit_file").print_file
    if report is not None and (report.suffix != ".html" or report.resolve() == path.resolve()):
        raise UsageError("--report", got=repr(str(report)), need="an .html file other than the one audited")
    for option, typed in (("--column", column), ("--id-column", id_column)):
        if typed == "":
            raise UsageError(option, got="nothing", need="a name")
    rule = _rule(tail, max_period, min_match)
    print_file(path, column or "token_ids", id_column, rule, report, as_json=as_json)


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
