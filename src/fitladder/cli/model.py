"""`fitladder model`: makes the demo's model folder, names a folder by digest, writes a weightless one."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from fitladder.canonical import sha256_file
from fitladder.cli.options import DEFAULT_ENGINE_PYTHON, EnginePython, Json, print_json
from fitladder.engine.convert.geometry_model import write_geometry_model
from fitladder.engine.parent.failure import last_cause
from fitladder.errors import EnvironmentNotReady, FitladderError, InputRefused, UsageError
from fitladder.files.tree_digest import folder_tree

__all__ = ["app"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)
_KINDS: dict[str, type[FitladderError]] = {
    error.__name__: error for error in (EnvironmentNotReady, InputRefused, UsageError)
}


@app.command()
def convert(
    name: Annotated[str, typer.Argument(help="A known model, such as smollm2-135m.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to make; a finished one is kept.")],
    engine_python: EnginePython = DEFAULT_ENGINE_PYTHON,
    *,
    as_json: Json = False,
) -> None:
    """Convert a model from an installed package, once, to the registered bytes."""
    python = Path(sys.executable) if importlib.util.find_spec("transformers") else engine_python
    if not python.is_file():
        raise EnvironmentNotReady("no Python of the engine environment", got=python, do="run make setup")
    run = subprocess.run(
        [str(python), "-m", "fitladder.engine.convert.gguf", name, str(out)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        answer = json.loads(run.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise EnvironmentNotReady(
            f"the conversion of {name} ended with {run.returncode}", got=last_cause(run.stderr)
        ) from None
    if run.returncode:
        raise _KINDS.get(answer.get("refused"), EnvironmentNotReady)(answer["message"])
    _show(answer, as_json)


@app.command()
def digest(folder: Annotated[Path, typer.Argument(help="A model folder.")], *, as_json: Json = False) -> None:
    """The digests that name a local model folder in params.yaml."""
    tokenizer = folder / "tokenizer.json"
    tree = folder_tree(folder, error=InputRefused)
    if not (folder / "config.json").is_file():
        raise InputRefused(f"{folder} is no model folder", got=f"{tree.files} files", need="a config.json")
    _show(
        {
            "folder": str(folder),
            "folder_sha256": tree.sha256,
            "tokenizer_sha256": sha256_file(tokenizer) if tokenizer.is_file() else "",
        },
        as_json,
    )


@app.command()
def weightless(
    preset: Annotated[str, typer.Argument(help="A preset, such as qwen3.5-4b.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to write.")],
    *,
    as_json: Json = False,
) -> None:
    """Write a config-only folder with a model's cache geometry, for rehearsals."""
    _show({"folder": str(write_geometry_model(preset, out))}, as_json)


def _show(values: dict[str, str], as_json: bool) -> None:
    if as_json:
        print_json(values)
        return
    for name, value in values.items():
        sys.stdout.write(f"{name.replace('_', ' '):<17} {value}\n")
