"""`fitladder report [X]`: the page of one experiment, or of all, with the index over them."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from fitladder.cli.options import DataDir, Json, Params, print_json
from fitladder.files.atomic import write_output
from fitladder.registry.data_paths import report_paths
from fitladder.registry.load import load_registry
from fitladder.report.experiment_page import render_report
from fitladder.report.experiment_view import load_view
from fitladder.report.index_page import build_index
from fitladder.report.study_page import build_study, study_folders, study_page_name
from fitladder.report.view import ExperimentView

__all__ = ["report"]


def report(
    experiment: Annotated[
        str | None, typer.Argument(help="An experiment id; all of them where left out.")
    ] = None,
    *,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Another folder than data/reports.")] = None,
    params: Params = Path("params.yaml"),
    data: DataDir = Path("data"),
    as_json: Json = False,
) -> None:
    """Make the page and its Markdown twin from verified records. The same records give the same bytes."""
    registry = load_registry(params)
    chosen = [experiment] if experiment else list(registry.experiments)
    folder = out or report_paths(data, "index")[0].parent
    made: dict[str, Path] = {}
    views: dict[str, ExperimentView] = {}
    for name in chosen:
        views[name] = load_view(name, data, registry)
        made[name] = _write(folder, f"{name}.html", render_report(views[name]))
    for study in () if experiment else study_folders(data):
        made[study.name] = _write(folder, study_page_name(study), build_study(study))
    index = _write(folder, "index.html", build_index(data, registry, views))
    if as_json:
        pages = {
            name: {"html": str(page), "markdown": str(page.with_suffix(".md"))} for name, page in made.items()
        }
        print_json({"reports": pages, "index": str(index)})
    else:
        for page in (*made.values(), index):
            typer.echo(f"{page}  (and {page.with_suffix('.md').name})")
    if show:
        webbrowser.open((made[experiment] if experiment else index).resolve().as_uri())


def _write(folder: Path, name: str, twins: tuple[str, str]) -> Path:
    page = folder / name
    for path, text in zip((page, page.with_suffix(".md")), twins, strict=True):
        write_output(path, text.encode())
    return page
