"""`fitladder verify`: every byte that lies here against its receipt, or against an export."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fitladder.cli.load_attribute import load_attribute
from fitladder.cli.options import DataDir, Json, Params, print_json, print_table
from fitladder.errors import BundleError, FitladderError, RegistrationError, UsageError
from fitladder.evidence.checkout_bundles import load_bundles
from fitladder.records.experiment import Experiment
from fitladder.records.layout import PREFLIGHT, RECEIPT
from fitladder.records.registry import Registry
from fitladder.registry.binding import bind
from fitladder.registry.data_paths import bundles_folder
from fitladder.registry.load import load_registry
from fitladder.store.verify_bundle import VerifiedBundle, VerifiedPreflight, check_distinct
from fitladder.store.verify_root import VerifiedRoot, verify_root

__all__ = ["verify"]

GET_THEM = "get them with `fitladder lineage pull EXPERIMENT`, or name a root with --root"
FILES_OF_THE_TOOLS = frozenset({".gitignore"})  # DVC writes it next to its outputs


def verify(
    experiment: Annotated[
        str | None, typer.Argument(help="An experiment id; every one whose bundles are here where left out.")
    ] = None,
    *,
    root: Annotated[
        Path | None,
        typer.Option("--root", help="A root or copy, instead of data/bundles/EXPERIMENT."),
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Check an export; it needs the files and nothing else.")
    ] = None,
    signer: Annotated[
        Path | None,
        typer.Option(
            "--signer", help="Public key that must have signed the export, instead of a reviewer's."
        ),
    ] = None,
    any_binding: Annotated[
        bool, typer.Option("--any-binding", help="Do not ask whether today's binding made the bundles.")
    ] = False,
    params: Params = Path("params.yaml"),
    data: DataDir = Path("data"),
    as_json: Json = False,
) -> None:
    """Re-verify every bundle, receipt and catalog: sizes, hashes, places, keys, and that nothing is twice.

    Reads no decoded text and writes nothing. Exit code 6 names the first file that cannot be believed.
    """
    if export is not None:
        verify_export = load_attribute("fitladder.cli.verify_export:verify_export")
        verify_export(
            export,
            experiment=experiment,
            root=root,
            signer=signer,
            params=params,
            data=data,
            as_json=as_json,
        )
        return
    if signer is not None:
        raise UsageError("--signer without an export", need="--export FILE")
    registry = load_registry(params)
    chosen = _chosen(registry, experiment, root, data)
    found: list[VerifiedRoot] = []
    refused: list[tuple[Experiment, FitladderError]] = []
    for one in chosen:
        try:
            here = _load(one, root, data, any_binding)
        except FitladderError as refusal:
            refused.append((one, refusal))
        else:
            found += [here] if here else []
    links = [link for one in found for link in one.links]
    _print(found, refused, as_json)
    if refused:
        raise refused[0][1]
    check_distinct(links)
    if not links:
        raise BundleError("no bundle lies here", got=str(root or data / "bundles"), do=GET_THEM)


def _chosen(registry: Registry, experiment: str | None, root: Path | None, data: Path) -> list[Experiment]:
    if experiment is not None:
        return [registry.experiment(experiment)]
    if root is not None:
        raise UsageError("--root without an experiment", need="the experiment whose root it is")
    folder = data / "bundles"
    there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    for name in there:
        if name not in registry.experiments and name not in FILES_OF_THE_TOOLS:
            raise RegistrationError(
                f"{folder / name} is of no registered experiment", need=" or ".join(registry.experiments)
            )
    return list(registry.experiments.values())


def _load(one: Experiment, root: Path | None, data: Path, any_binding: bool) -> VerifiedRoot | None:
    if root is None and not any_binding:
        return load_bundles(data, one)
    folder = root or bundles_folder(data, one.experiment_id)
    if root is None and not folder.exists():
        return None
    return verify_root(folder, one.experiment_id, None if any_binding else bind(one))


def _print(
    found: list[VerifiedRoot], refused: list[tuple[Experiment, FitladderError]], as_json: bool
) -> None:
    if as_json:
        print_json(
            {
                "verified": not refused and any(one.links for one in found),
                "experiments": [_summary(one) for one in found],
                "refused": {one.experiment_id: str(refusal) for one, refusal in refused},
            }
        )
        return
    rows = [_row(link) for one in found for link in one.links]
    rows += [(one.experiment_id, "", "REFUSED", "", "", type(refusal).__name__) for one, refusal in refused]
    if not rows:
        return
    columns = ("experiment", "phase", "state", "rows", "sampled tokens", "receipt SHA-256")
    print_table("every byte against its receipt", columns, rows)


def _row(link: VerifiedBundle | VerifiedPreflight) -> tuple[str, ...]:
    name, phase = link.key.experiment_id, f"{link.key.phase}@{link.key.thinking_budget_tokens}"
    if isinstance(link, VerifiedPreflight):
        return name, phase, "preflight only", "-", "-", "-"
    receipt = link.receipt
    state = "verified" + "".join(f", {flag.replace('_', ' ')}" for flag in receipt.flags)
    sampled = f"{receipt.totals.sampled_tokens:,}"
    return name, phase, state, str(receipt.rows), sampled, link.files[RECEIPT].sha256


def _summary(found: VerifiedRoot) -> dict[str, Any]:
    return {
        "experiment_id": found.catalog.experiment_id,
        "root": str(found.root),
        "root_id": found.catalog.root_id,
        "checkpoint": found.catalog.checkpoint,
        "tree": found.catalog.tree.model_dump(mode="json"),
        "bundles": [
            {
                "thinking_budget_tokens": one.key.thinking_budget_tokens,
                "phase": one.key.phase,
                "state": "complete" if isinstance(one, VerifiedBundle) else "preflight_only",
                "binding_sha256": one.preflight.binding.binding_sha256,
                "go_sha256": one.preflight.go_sha256,
                "flags": list(one.receipt.flags) if isinstance(one, VerifiedBundle) else [],
                "totals": one.receipt.totals.model_dump() if isinstance(one, VerifiedBundle) else None,
                "files": {
                    name: record.model_dump()
                    for name, record in (
                        one.files if isinstance(one, VerifiedBundle) else {PREFLIGHT: one.file}
                    ).items()
                },
            }
            for one in found.links
        ],
    }
