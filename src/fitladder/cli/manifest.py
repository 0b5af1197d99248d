"""`fitladder manifest`: what belongs to an experiment, where it lies, and what was left out."""

from pathlib import Path
from typing import Annotated

import typer

from fitladder.canonical import canonical_bytes
from fitladder.cli.bundle_folder import held_root
from fitladder.cli.options import DataDir, Json, Params, print_json, print_table
from fitladder.cli.output import write_output
from fitladder.registry.load import load_registry
from fitladder.store.manifest import Manifest, build_manifest
from fitladder.store.verify_root import verify_root

__all__ = ["manifest"]


def manifest(
    experiment: Annotated[str, typer.Argument(help="An experiment id.")],
    *,
    root: Annotated[
        Path | None, typer.Option("--root", help="A root or copy, instead of data/bundles/EXPERIMENT.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write it to this file too.")] = None,
    params: Params = Path("params.yaml"),
    data: DataDir = Path("data"),
    as_json: Json = False,
) -> None:
    """Verify an experiment's bundles and list them: storage, checksums, who needs what, what is omitted."""
    registered = load_registry(params).experiment(experiment)
    folder = held_root(root, data, registered.experiment_id)
    made = build_manifest(registered, verify_root(folder, registered.experiment_id))
    if out is not None:
        write_output(out, canonical_bytes(made) + b"\n")
    if as_json:
        print_json(made.model_dump(mode="json"))
    else:
        _print(made)


def _print(made: Manifest) -> None:
    tree = made.tree
    files: list[tuple[str, ...]] = [
        (name, f"{record.bytes:,}", record.sha256) for name, record in made.files.items()
    ]
    title = f"{made.experiment_id}: {tree.files} files, {tree.bytes:,} bytes, tree {tree.sha256}"
    print_table(title, ("file", "bytes", "SHA-256"), files)
    needs: list[tuple[str, ...]] = [
        (need.what, ", ".join(need.inputs) or "-", need.command) for need in made.required_for
    ]
    print_table("re-derived from these files by", ("what", "inputs besides", "command"), needs)
    print_table("left out", ("what", "why"), [(one.what, one.reason) for one in made.omitted])
    storage = made.storage
    typer.echo(f"root: {storage.root or '-'}, or where ${storage.environment_override} says")
    typer.echo(f"copy: {storage.reviewers_copy}, by `{storage.pull}`")
