"""`fitladder inputs`: fetch and check what is registered by hash and not in the repository."""

from pathlib import Path
from typing import Annotated

import typer

from fitladder.cli.options import DataDir, Json, Params, print_json, print_table
from fitladder.errors import InputRefused
from fitladder.registry.inputs import InputState, fetch_inputs, survey_inputs
from fitladder.registry.load import load_registry

__all__ = ["app"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="An experiment id.")]


@app.command()
def fetch(
    experiment: Name,
    source: Annotated[str, typer.Option("--from", help="A folder or URL that holds NAME.json files.")],
    params: Params = Path("params.yaml"),
    data: DataDir = Path("data"),
    as_json: Json = False,
) -> None:
    """Copy each missing input from SOURCE; only bytes of the registered SHA-256 are written."""
    registered = load_registry(params).experiment(experiment)
    _print(experiment, fetch_inputs(data, registered, source), as_json)


@app.command()
def check(
    experiment: Name,
    params: Params = Path("params.yaml"),
    data: DataDir = Path("data"),
    as_json: Json = False,
) -> None:
    """Hash every registered input; exit 4 where one is absent or different."""
    states = survey_inputs(data, load_registry(params).experiment(experiment))
    _print(experiment, states, as_json)
    wrong = [state.name for state in states if not state.right]
    if wrong:
        raise InputRefused(
            f"inputs of {experiment}",
            got=f"{', '.join(wrong)} absent or different",
            need="the registered bytes",
            do=f"run `fitladder inputs fetch {experiment} --from PATH|URL`",
        )


def _print(experiment: str, states: tuple[InputState, ...], as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "name": state.name,
                    "path": str(state.path),
                    "registered_sha256": state.registered_sha256,
                    "found_sha256": state.found_sha256,
                }
                for state in states
            ]
        )
        return
    rows = [
        (
            state.name,
            "right" if state.right else "different" if state.found_sha256 else "absent",
            str(state.path),
        )
        for state in states
    ]
    print_table(f"inputs of {experiment}", ("input", "state", "path"), rows)
