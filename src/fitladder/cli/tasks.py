"""`fitladder tasks`: makes a task set from a seed, freezes its prompts and checks them."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from fitladder.canonical import parse_model, read_json, sha256_bytes
from fitladder.cli.options import Json, print_json, print_table
from fitladder.domains.macros.files import parse_inputs, write_files
from fitladder.domains.macros.records import render_records
from fitladder.domains.macros.tasks import TaskShape
from fitladder.domains.macros.taskset import load_excluded, render_task_set
from fitladder.errors import UsageError
from fitladder.prompts.manifest import (
    RenderedPrompt,
    check_prompts,
    freeze_prompts,
    parse_manifest,
    render_manifest,
    render_prompts,
)
from fitladder.prompts.messages import parse_records
from fitladder.prompts.tokenizer import PromptTokenizer, load_tokenizer
from fitladder.records.experiment import ARMS

__all__ = ["app"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)
Folder = Annotated[Path, typer.Option("--inputs", help="The folder that `tasks generate` wrote.")]
Tokenizer = Annotated[Path, typer.Option("--tokenizer", help="A tokenizer.json.")]
Sha256 = Annotated[str | None, typer.Option("--sha256", help="The tokenizer file's registered SHA-256.")]
MANIFEST = "prompt_manifest.json"


@app.command()
def generate(
    *,
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same bytes everywhere.")],
    out: Annotated[Path, typer.Option("--out", help="A folder; files there are never overwritten.")],
    records: Annotated[int, typer.Option("--records", help="Records an arm, half of them controls.")] = 12,
    visible: Annotated[int, typer.Option("--visible", help="Visible examples a task.")] = 8,
    hidden: Annotated[int, typer.Option("--hidden", help="Hidden examples a task.")] = 8,
    demonstrations: Annotated[int, typer.Option("--demonstrations", help="Solved train programs.")] = 3,
    macros: Annotated[int, typer.Option("--macros", help="Macros of a library.")] = 8,
    wording: Annotated[
        Literal["full", "compact"], typer.Option("--wording", help="Length of prompts.")
    ] = "full",
    exclude: Annotated[
        list[Path] | None, typer.Option("--exclude", help="An earlier task set to share nothing with.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write tasks, sealed hidden examples, libraries, demonstrations and both arms' records."""
    words = {
        "records": records,
        "visible": visible,
        "hidden": hidden,
        "demonstrations": demonstrations,
        "macros": macros,
        "wording": wording,
    }
    shape = parse_model(TaskShape, words, where="task set", error=UsageError)
    files = render_task_set(seed, shape, load_excluded(exclude or []))
    files |= render_records(parse_inputs(files))
    write_files(out, files)
    _print_files(out, files, as_json)


@app.command()
def freeze(
    inputs: Folder,
    tokenizer: Tokenizer,
    open_text: Annotated[
        str, typer.Option("--open-text", help="Opens thinking; \\n is a newline.")
    ] = "<think>\\n",
    sha256: Sha256 = None,
    as_json: Json = False,
) -> None:
    """Render and tokenise both arms into prompt_manifest.json. A different one is never replaced."""
    loaded = load_tokenizer(tokenizer, sha256)
    opening = open_text.replace("\\n", "\n")
    arms: dict[str, tuple[RenderedPrompt, ...]] = {
        arm: _rendered(inputs, arm, opening, loaded) for arm in ARMS
    }
    manifest = freeze_prompts(arms, opening, loaded.identity, loaded.special_ids)
    files = {MANIFEST: render_manifest(manifest)}
    write_files(inputs, files)
    _print_files(inputs, files, as_json)


@app.command()
def check(inputs: Folder, tokenizer: Tokenizer, sha256: Sha256 = None, as_json: Json = False) -> None:
    """Render and tokenise again; exit 4 at the first prompt that is not the frozen one."""
    loaded = load_tokenizer(tokenizer, sha256)
    where = inputs / MANIFEST
    manifest = parse_manifest(read_json(where), where=str(where))
    counts = {}
    for arm in manifest.arms:
        prompts = _rendered(inputs, arm, manifest.open_text or "<think>\n", loaded)
        check_prompts(manifest, arm, prompts, tokenizer=loaded.identity, special_ids=loaded.special_ids)
        counts[arm] = len(prompts)
    if as_json:
        print_json({"frozen": True, "prompts": counts, "tokenizer": loaded.identity.model_dump(mode="json")})
    else:
        typer.echo(", ".join(f"{arm}: {count} prompts as frozen" for arm, count in counts.items()))


def _rendered(inputs: Path, arm: str, open_text: str, loaded: PromptTokenizer) -> tuple[RenderedPrompt, ...]:
    path = inputs / f"records_{arm}.json"
    return render_prompts(parse_records(read_json(path), where=str(path)), open_text, loaded.encode)


def _print_files(folder: Path, files: dict[str, bytes], as_json: bool) -> None:
    rows = {name: sha256_bytes(data) for name, data in files.items()}
    if as_json:
        print_json({"folder": str(folder), "sha256": rows})
    else:
        print_table(str(folder), ("file", "SHA-256"), list(rows.items()))
