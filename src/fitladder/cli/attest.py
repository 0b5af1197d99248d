"""`fitladder attest`: the receipt chain as an in-toto statement, for tools that are not ours."""

from pathlib import Path
from typing import Annotated

import typer

from fitladder.cli.bundle_folder import held_root
from fitladder.cli.options import DataDir, Json, Params, print_json
from fitladder.cli.output import write_output
from fitladder.registry.load import load_registry
from fitladder.store.attestation import render_statement
from fitladder.store.check_attestation import attest_root, find_audits

__all__ = ["attest"]


def attest(
    experiment: Annotated[str, typer.Argument(help="An experiment id.")],
    *,
    root: Annotated[
        Path | None, typer.Option("--root", help="A root or copy, instead of data/bundles/EXPERIMENT.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Default: data/attestations/EXPERIMENT.intoto.json.")
    ] = None,
    params: Params = Path("params.yaml"),
    data: DataDir = Path("data"),
    as_json: Json = False,
) -> None:
    """Verify an experiment's bundles and state them: subjects by SHA-256, receipts, GOs, engine, audits."""
    name = load_registry(params).experiment(experiment).experiment_id
    statement = attest_root(held_root(root, data, name), name, data, find_audits(data, name))
    path = out or data / "attestations" / f"{name}.intoto.json"
    sha256 = write_output(path, render_statement(statement))
    if as_json:
        print_json({"path": str(path), "sha256": sha256, "subjects": len(statement.subject)})
    else:
        typer.echo(f"{path}: {len(statement.subject)} subjects, SHA-256 {sha256}")
        typer.echo(f"check it with: fitladder verify --attestation {path}")
