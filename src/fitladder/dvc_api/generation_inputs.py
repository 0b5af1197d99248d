"""Check that the inputs which dvc.lock records with the bundles are those the bundles were generated from.

A forced run, or an edited dvc.lock, can record later inputs; binding and prompts in each preflight say what
generation was given.
"""

from pathlib import Path
from typing import Any

from fitladder.canonical import parse_model, read_json
from fitladder.dvc_files.lock_file import LockedStage
from fitladder.dvc_files.md5 import raw_md5
from fitladder.errors import FitladderError, LineageError
from fitladder.evidence.checkout_bundles import begun
from fitladder.records.binding import Binding
from fitladder.records.experiment import Experiment
from fitladder.records.registry import Registry
from fitladder.registry.binding import bind, check_generation
from fitladder.registry.data_paths import bundles_folder, prompts_folder
from fitladder.store.verify_root import VerifiedRoot, verify_root

__all__ = ["check_recorded_generation"]

AFTER = "inputs recorded after generation"


def check_recorded_generation(checkout: Path, stage: LockedStage, registry: Registry) -> None:
    """Compare parameters, prompts and code that dvc.lock records for the bundles with their preflights.

    Raises LineageError naming the first that was recorded afterwards, the kinds of BundleError where a bundle
    cannot be believed at all.
    """
    experiment_id = stage.name.partition("@")[2]
    folder = bundles_folder(checkout / "data", experiment_id)
    if not any(folder.iterdir()):
        return
    found = verify_root(folder, experiment_id)
    section = _recorded_section(stage, experiment_id)
    for one in begun(found):
        _check_section(one.preflight.binding, section, where=str(one.folder))
    _check_prompts(checkout, stage, found)
    _check_code(checkout, stage, found, registry.experiment(experiment_id))


def _recorded_section(stage: LockedStage, experiment_id: str) -> dict[str, Any]:
    recorded = stage.params.get(f"experiments.{experiment_id}")
    where = f"dvc.lock: {stage.name}: experiments.{experiment_id}"
    if not isinstance(recorded, dict):
        raise LineageError(where, got=type(recorded).__name__, need="the registered section")
    plain = {"experiment_id": experiment_id, **recorded}
    return parse_model(Experiment, plain, where=where, error=LineageError).protocol_section()


def _check_section(made_with: Binding, recorded: dict[str, Any], *, where: str) -> None:
    for name in sorted(made_with.section.keys() | recorded.keys()):
        if made_with.section.get(name) != recorded.get(name):
            raise LineageError(
                f"dvc.lock: {AFTER} of {where}: {name}",
                got=recorded.get(name),
                need=made_with.section.get(name),
                do="restore params.yaml and dvc.lock from the commit of the bundles",
            )


def _check_prompts(checkout: Path, stage: LockedStage, found: VerifiedRoot) -> None:
    folder = prompts_folder(checkout / "data", found.catalog.experiment_id)
    for one in begun(found):
        rows = read_json(folder / f"{one.key.arm}.json", error=LineageError)
        need = [(row.record_id, row.rendered_sha256) for row in one.preflight.prompts]
        got = [(row["id"], row["rendered_prompt_sha256"]) for row in rows]
        for mine, its in zip(got, need, strict=len(got) == len(need)):
            if mine != its:
                raise LineageError(f"dvc.lock: {AFTER} of {one.folder}: prompt {mine[0]}", got=mine, need=its)
        if len(got) != len(need):
            raise LineageError(f"dvc.lock: {AFTER} of {one.folder}: prompts", got=len(got), need=len(need))


def _check_code(checkout: Path, stage: LockedStage, found: VerifiedRoot, experiment: Experiment) -> None:
    """Where the code here is not what generated, dvc.lock may not record the code here for the bundles."""
    now = bind(experiment)
    for one in begun(found):
        try:
            check_generation(one.preflight.binding, now, where=str(one.folder))
        except FitladderError as foreign:
            code = [dep for path, dep in sorted(stage.deps.items()) if path.startswith("src/")]
            if all(raw_md5(checkout / dep.path) == dep.md5 for dep in code):
                raise LineageError(
                    f"dvc.lock: {AFTER} of {one.folder}: code",
                    got=foreign.got,
                    need=foreign.need,
                    do="restore dvc.lock from the commit of the bundles",
                ) from foreign
            raise
