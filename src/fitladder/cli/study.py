"""`fitladder study`: run, show and verify measurements of width, graph coverage, pool and admission."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fitladder.cli.options import DEFAULT_ENGINE_PYTHON, DataDir, EnginePython, Json, print_json, print_table
from fitladder.errors import EngineFailed
from fitladder.study.bundle import VerifiedStudy, verify_study
from fitladder.study.checkout import run_here, study_host
from fitladder.study.summary import summary_lines
from fitladder.study.table import COLUMNS, cell_rows
from fitladder.workspace import workspace_here

__all__ = ["app"]

log = logging.getLogger(__name__)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="A folder of data/studies that holds a study.yaml.")]


@app.command()
def run(
    name: Name,
    *,
    data: DataDir = Path("data"),
    engine_python: EnginePython = DEFAULT_ENGINE_PYTHON,
    models: Annotated[Path, typer.Option(help="Where a study's model folder is looked for.")] = Path(
        "models"
    ),
    stop_after_s: Annotated[
        float | None, typer.Option(help="Start no run that would end later than this.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run what is not finished yet, each cell in an engine process of its own.

    Holds the device's lock. Exit code 9 where a cell failed, 6 where another engine has the device.
    """
    workspace = replace(workspace_here(), data_name=str(data))
    host = study_host(
        workspace,
        name,
        say=log.info,
        stop_after_s=stop_after_s,
        engine_python=engine_python,
        models=models,
    )
    verified = run_here(workspace, host)
    _print(verified, as_json)
    failed = [cell.name for cell in verified.results.cells if cell.state == "failed"]
    if failed:
        raise EngineFailed(
            f"cells of {name} failed",
            got=", ".join(failed),
            do=f"see {host.out / 'table.md'} and {host.work}",
        )


@app.command()
def show(name: Name, data: DataDir = Path("data"), as_json: Json = False) -> None:
    """Show verdict and table of a study, after deriving every figure from its measurements."""
    _print(verify_study(_folder(data, name)), as_json)


@app.command()
def verify(name: Name, data: DataDir = Path("data"), as_json: Json = False) -> None:
    """Re-derive every figure of a study from its measurements; exit 6 on the first difference."""
    receipt = verify_study(_folder(data, name)).receipt
    if as_json:
        print_json(receipt.model_dump(mode="json"))
    else:
        typer.echo(
            f"{receipt.study_id}: {receipt.runs} runs, {receipt.cells_complete} of {receipt.cells} cells "
            f"complete, {receipt.failures} failures; every figure follows from the measurements"
        )


def _folder(data: Path, name: str) -> Path:
    return data / "studies" / name


def _print(verified: VerifiedStudy, as_json: bool) -> None:
    sentences = summary_lines(verified.study, verified.results)
    if as_json:
        document: dict[str, Any] = verified.results.model_dump(mode="json")
        print_json(document | {"verdict": sentences})
        return
    print_table(verified.study.study_id, COLUMNS, cell_rows(verified.results))
    for sentence in sentences:
        typer.echo(sentence)
