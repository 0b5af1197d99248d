"""`fitladder report [X]`: the page of one experiment, or of all, with the index over them."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from fitladder.commands.options import DataDir, Json, Params, print_json
from fitladder.lineage.outputs import write_file
from fitladder.lineage.places import report_paths
from fitladder.protocol.registry import load_registry
from fitladder.report.build import build_report
from fitladder.report.index import build_index

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
    made: dict[str, tuple[Path, Path]] = {}
    for name in chosen:
        html, markdown = build_report(name, data, registry)
        page, twin = report_paths(data, name)
        if out is not None:
            page, twin = out / page.name, out / twin.name
        write_file(page, html.encode())
        write_file(twin, markdown.encode())
        made[name] = (page, twin)
    folder = out or report_paths(data, "index")[0].parent
    html, markdown = build_index(data, registry)
    index = (folder / "index.html", folder / "index.md")
    for path, text in zip(index, (html, markdown), strict=True):
        write_file(path, text.encode())
    opened = made[experiment][0] if experiment else index[0]
    if as_json:
        pages = {name: {"html": str(page), "markdown": str(twin)} for name, (page, twin) in made.items()}
        print_json({"reports": pages, "index": str(index[0])})
    else:
        for page, twin in made.values():
            typer.echo(f"{page}  (and {twin.name})")
        typer.echo(f"{index[0]}")
    if show:
        webbrowser.open(opened.resolve().as_uri())
