"""`fitladder verify --export`: an export against the files that lie here, and who signed it."""

from pathlib import Path

import typer

from fitladder.cli.export import UNSIGNED
from fitladder.cli.options import print_json, print_table
from fitladder.errors import BundleError
from fitladder.export.check import FileCheck, check_files, check_statement
from fitladder.export.envelope import Signer, check_signers, load_envelope, load_signer, registered_signers
from fitladder.export.manifest import Manifest
from fitladder.export.statement import Statement
from fitladder.registry.data_paths import bundles_folder
from fitladder.registry.load import load_registry

__all__ = ["verify_export"]


def verify_export(
    file: Path,
    *,
    experiment: str | None,
    root: Path | None,
    signer: Path | None,
    params: Path,
    data: Path,
    as_json: bool,
) -> None:
    """Check signatures, then every named file, then that the root gives this statement and no other.

    Args:
        file: the export.
        experiment: the experiment that it must be of; None where any will do.
        root: a root or copy, instead of the experiment's in `data`.
        signer: a public key that must have signed; None: any registered reviewer's, or no signature.
        params: the registry that names reviewers' keys; it may be missing.
        data: the data folder.
        as_json: print one JSON document.

    Raises BundleError and its kinds naming the file; UsageError on a signer's file that holds no key.
    """
    statement, envelope = load_envelope(file)
    name = statement.predicate.experiment_id
    if experiment not in (None, name):
        raise BundleError(f"{file} is of another experiment", got=name, need=experiment)
    believed = _believed(signer, params) if envelope.signatures or signer else ()
    signed = check_signers(envelope, believed, where=str(file))
    if signer is not None and not signed:
        raise BundleError(f"{file} is not signed", got=UNSIGNED, need=f"a signature of {signer}")
    folder = root or bundles_folder(data, name)
    files = check_files(statement, folder, data, where=str(file))
    refused = [one.refusal for one in files if one.refusal is not None]
    if not refused:
        check_statement(statement, folder, data, where=str(file))
    _print(statement, files, signed, as_json)
    if refused:
        raise refused[0]


def _believed(signer: Path | None, params: Path) -> tuple[Signer, ...]:
    if signer is not None:
        return (load_signer(signer),)
    return registered_signers(load_registry(params).reviewers) if params.exists() else ()


def _print(
    statement: Statement, files: tuple[FileCheck, ...], signed: tuple[Signer, ...], as_json: bool
) -> None:
    chain = statement.predicate
    refused = sum(one.refusal is not None for one in files)
    if as_json:
        print_json(
            {
                "verified": not refused,
                "experiment_id": chain.experiment_id,
                "subjects": len(files),
                "files": {one.name: str(one.refusal) if one.refusal else "matches" for one in files},
                "signed_by": [{"name": one.name, "key": one.fingerprint} for one in signed],
                "tree": chain.tree.model_dump(mode="json"),
                "manifest": chain.manifest.model_dump(mode="json"),
            }
        )
        return
    rows: list[tuple[str, ...]] = [
        (one.name, f"{one.bytes:,}", "REFUSED" if one.refusal else "matches") for one in files
    ]
    title = f"{chain.experiment_id}: {chain.tree.files} bundle files, tree {chain.tree.sha256}"
    print_table(title, ("file", "bytes", "SHA-256"), rows)
    _print_manifest(chain.manifest)
    by = ", ".join(f"{one.name} ({one.fingerprint})" for one in signed)
    typer.echo(
        f"{len(files) - refused} of {len(files)} files match; "
        + (f"signed by {by}" if by else f"{UNSIGNED}, and no file proves storage, inputs and omissions")
    )


def _print_manifest(manifest: Manifest) -> None:
    needs: list[tuple[str, ...]] = [
        (need.what, ", ".join(need.inputs) or "-", need.command) for need in manifest.required_for
    ]
    print_table("re-derived from these files by", ("what", "further inputs", "command"), needs)
    print_table("left out", ("what", "why"), [(one.what, one.reason) for one in manifest.omitted])
    storage = manifest.storage
    typer.echo(f"root: {storage.root or '-'}, or where ${storage.environment_override} says")
    typer.echo(f"copy: {storage.reviewers_copy}, by `{storage.pull}`")
