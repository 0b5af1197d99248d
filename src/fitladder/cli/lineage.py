"""`fitladder lineage`: bring bundles in, and check that DVC's record, files, stores and receipts agree."""

import os
from pathlib import Path
from typing import Annotated

import typer

from fitladder.cli.options import Json, print_json, print_table
from fitladder.dvc_api import publish as run
from fitladder.dvc_api.check import check_lineage
from fitladder.dvc_api.command import Dvc
from fitladder.dvc_api.forget import forget as forget_entries
from fitladder.registry.load import load_registry
from fitladder.store.root import resolve_root

__all__ = ["app"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="An experiment id.")]
Checkout = Annotated[Path, typer.Option("--checkout", help="The checkout that holds dvc.yaml.")]


@app.command()
def ingest(
    experiment: Name,
    root: Annotated[
        Path | None, typer.Option("--root", help="The external root; the registered one where left out.")
    ] = None,
    push: Annotated[bool, typer.Option("--push/--no-push", help="Push to the default remote.")] = True,
    checkout: Checkout = Path(),
    as_json: Json = False,
) -> None:
    """Verify the external root, copy it in, verify again, record, push, audit and report. Repeat at will."""
    checkout, environment = checkout.absolute(), dict(os.environ)
    registry = load_registry(checkout / "params.yaml")
    source = root.absolute() if root else None
    if source is None:
        registered = registry.experiment(experiment)
        source = resolve_root(registered, environment, others=registry.experiments.values())
    done = run.run_lineage(experiment, source, checkout, environment, pushes=push)
    if as_json:
        print_json(
            {
                "experiment_id": experiment,
                "bundles": done.ingested.bundles,
                "tree_sha256": done.ingested.tree_sha256,
                "new": done.ingested.is_new,
                "pushed_to": done.pushed_to,
                "report": str(done.report),
                "git": list(done.git_commands),
            }
        )
        return
    rows: list[tuple[str, ...]] = [
        (
            "bundles",
            f"{done.ingested.bundles} verified, {'brought in' if done.ingested.is_new else 'as before'}",
        ),
        ("tree", done.ingested.tree_sha256),
        (
            "pushed to",
            done.pushed_to or ("nowhere: no default remote is configured" if push else "nowhere: --no-push"),
        ),
        ("report", str(done.report)),
    ]
    print_table(experiment, ("what", "value"), rows)
    typer.echo("\n".join(["commit with", *done.git_commands]))  # whole lines, to be copied


@app.command()
def pull(experiment: Name, checkout: Checkout = Path(), as_json: Json = False) -> None:
    """Pull an experiment with everything that it was made from, then hash all of it against its receipts."""
    count = run.pull(Dvc(checkout.absolute(), dict(os.environ)), experiment)
    if as_json:
        print_json({"experiment_id": experiment, "objects": count})
    else:
        typer.echo(f"{experiment}: {count} objects as recorded, receipts verified")


@app.command()
def check(
    experiment: Annotated[str | None, typer.Argument(help="An experiment id; all where left out.")] = None,
    remotes: Annotated[
        bool, typer.Option("--remotes", help="Every remote that is a folder must hold everything too.")
    ] = False,
    checkout: Checkout = Path(),
    as_json: Json = False,
) -> None:
    """Hash everything that dvc.lock records: files, cache, receipts. DVC's own "up to date" is not asked."""
    checkout = checkout.absolute()
    names = [experiment] if experiment else list(load_registry(checkout / "params.yaml").experiments)
    objects = {name: check_lineage(checkout, name, with_remotes=remotes) for name in names}
    if as_json:
        print_json({"agree": True, "objects": objects})
        return
    rows: list[tuple[str, ...]] = [(name, f"{count} objects as recorded") for name, count in objects.items()]
    print_table("dvc.lock, files, stores and receipts agree", ("experiment", "what"), rows)


@app.command()
def forget(experiment: Name, checkout: Checkout = Path()) -> None:
    """Put what dvc.lock says of an experiment back to Git's last commit; other entries stay, no file goes."""
    load_registry(checkout / "params.yaml").experiment(experiment)
    count = forget_entries(checkout.absolute(), experiment)
    typer.echo(f"{experiment}: {count} entries of dvc.lock put back to what Git has")
