"""`fitladder export`: one experiment's files, receipt chain and manifest as a signed in-toto statement."""

from pathlib import Path
from typing import Annotated

import typer

from fitladder.canonical import sha256_bytes
from fitladder.cli.bundle_folder import held_root
from fitladder.cli.options import DataDir, Json, Params, print_json
from fitladder.errors import UsageError
from fitladder.export.check import export_root
from fitladder.export.envelope import load_private_key, parse_envelope, render_envelope
from fitladder.files.atomic import write_output
from fitladder.registry.load import load_registry

__all__ = ["UNSIGNED", "export"]

UNSIGNED = "unsigned: nobody vouches"


def export(
    experiment: Annotated[str, typer.Argument(help="An experiment id.")],
    *,
    out: Annotated[Path, typer.Option("--out", help="The file to write, such as EXPERIMENT.intoto.json.")],
    key: Annotated[
        Path | None,
        typer.Option("--key", help="Sign with this OpenSSH ed25519 private key, unencrypted."),
    ] = None,
    root: Annotated[
        Path | None, typer.Option("--root", help="A root or copy, instead of data/bundles/EXPERIMENT.")
    ] = None,
    params: Params = Path("params.yaml"),
    data: DataDir = Path("data"),
    as_json: Json = False,
) -> None:
    """Verify an experiment's bundles and write one file that says what they are, for other people's tools.

    An in-toto statement (v1) in a DSSE envelope: every file by SHA-256, receipts, GOs, engine, audits, where
    the files lie, who needs which, what was left out. The same files and key give the same bytes.
    """
    private_key = None if key is None else load_private_key(key)
    registered = load_registry(params).experiment(experiment)
    statement = export_root(held_root(root, data, registered.experiment_id), registered, data)
    rendered = render_envelope(statement, private_key)
    _, envelope = parse_envelope(rendered, where=str(out))
    write_output(out, rendered, error=UsageError)
    sha256 = sha256_bytes(rendered)
    signed = list(envelope.signatures)
    if as_json:
        print_json(
            {"path": str(out), "sha256": sha256, "subjects": len(statement.subject), "signed_by": signed}
        )
        return
    by = f"signed with {signed[0]}" if signed else UNSIGNED
    typer.echo(f"{out}: {len(statement.subject)} files, SHA-256 {sha256}, {by}")
    typer.echo(f"check it with: fitladder verify --export {out}")
