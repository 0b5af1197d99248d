"""`fitladder new NAME --from X`: register a follow-up that inherits everything and may read nothing."""

from pathlib import Path
from typing import Annotated

import typer

from fitladder.cli.options import Json, print_json
from fitladder.registry.follow_up import register_successor

__all__ = ["new"]


def new(
    name: Annotated[str, typer.Argument(help="The id of the follow-up.")],
    predecessor: Annotated[str, typer.Option("--from", help="The registered experiment that it follows.")],
    checkout: Annotated[
        Path, typer.Option("--checkout", help="The checkout that holds params.yaml.")
    ] = Path(),
    as_json: Json = False,
) -> None:
    """Copy the settings, forbid the predecessor's roots, begin the three texts that a reviewer will read."""
    done = register_successor(checkout.absolute(), name, predecessor)
    if as_json:
        print_json(
            {
                "experiment_id": done.experiment_id,
                "predecessor": done.predecessor,
                "written": [str(path) for path in done.written],
                "missing_inputs": list(done.missing_inputs),
            }
        )
        return
    typer.echo(
        f"{name} follows {predecessor}; its outputs cannot be read, its inputs are inherited by SHA-256."
    )
    for path in done.written:
        typer.echo(f"  {path.relative_to(checkout.absolute())}")
    if done.missing_inputs:
        names = ", ".join(done.missing_inputs)
        typer.echo(f"Not here: {names}. Next: fitladder inputs fetch {name} --from PATH|URL")
    typer.echo(f"Then: edit params.yaml and data/experiments/{name}/, and run fitladder validate {name}")
