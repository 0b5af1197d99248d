"""Verified bundles of a checkout: every byte checked against its receipt and against today's binding.

An absent bundle is never taken for one that was not made yet: what dvc.lock records must be here.
"""

from pathlib import Path

from fitladder.dvc_files.lock_file import load_lock
from fitladder.errors import BundleTampered, LineageError
from fitladder.records.experiment import Experiment
from fitladder.registry.binding import bind
from fitladder.registry.data_paths import bundles_folder
from fitladder.store.verify_bundle import VerifiedBundle, VerifiedPreflight
from fitladder.store.verify_root import VerifiedRoot, verify_root

__all__ = ["LOCK_FILE", "begun", "load_bundles"]

LOCK_FILE = "dvc.lock"


def load_bundles(data_dir: Path, experiment: Experiment) -> VerifiedRoot | None:
    """The verified copy under today's generation binding; None where no phase has run yet.

    Raises the kinds of BundleError naming the file, BindingChanged where a bundle is foreign to the binding,
    LineageError where dvc.lock records bundles that are not here.
    """
    folder = bundles_folder(data_dir, experiment.experiment_id)
    if folder.is_symlink():
        raise BundleTampered(f"{folder}", got="a symbolic link", need="a folder of its own")
    _check_recorded(folder, data_dir.parent / LOCK_FILE, experiment.experiment_id)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    return verify_root(folder, experiment.experiment_id, bind(experiment))


def begun(found: VerifiedRoot) -> tuple[VerifiedBundle | VerifiedPreflight, ...]:
    """Every phase that has a preflight, complete or not."""
    return (*found.bundles, *found.preflights)


def _check_recorded(folder: Path, lock_file: Path, experiment_id: str) -> None:
    stage = load_lock(lock_file).get(f"bundles@{experiment_id}")
    for out in stage.outs.values() if stage else ():
        path = lock_file.parent / out.path
        if path.absolute() != folder.absolute():
            raise LineageError(
                f"{lock_file} records the bundles of {experiment_id} elsewhere",
                got=out.path,
                need=str(folder),
                do="move nothing by hand; restore dvc.yaml and dvc.lock from Git",
            )
        if out.files and not (folder.is_dir() and any(folder.iterdir())):
            raise LineageError(
                f"{folder} is missing at its recorded path",
                got="nothing",
                need=f"{out.files} files, MD5 {out.md5}",
                do=f"run `fitladder lineage pull {experiment_id}`",
            )
