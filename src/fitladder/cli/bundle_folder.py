"""Folder of the bundles that a command is about, refused in one line where there is none."""

from pathlib import Path

from fitladder.errors import BundleError
from fitladder.registry.data_paths import bundles_folder

__all__ = ["held_root"]


def held_root(root: Path | None, data: Path, experiment_id: str) -> Path:
    """The folder named by --root, else the experiment's copy. Raises BundleError where nothing is there."""
    folder = root or bundles_folder(data, experiment_id)
    if not folder.exists():
        raise BundleError(
            f"no bundles of {experiment_id}",
            got=f"nothing at {folder}",
            need="an artifact root, or its copy",
            do=f"run `fitladder lineage pull {experiment_id}`, or name a root with --root",
        )
    return folder
