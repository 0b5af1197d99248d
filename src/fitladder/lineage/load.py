"""The bundles that lie here, believed only when every byte answers to its receipt and to today's binding."""

from pathlib import Path

from fitladder.bundles.inventory import VerifiedRoot, verify_root
from fitladder.errors import BundleTampered
from fitladder.lineage.places import bundles_folder
from fitladder.protocol.binding import bind
from fitladder.protocol.experiment import Experiment

__all__ = ["load_bundles"]


def load_bundles(data_dir: Path, experiment: Experiment) -> VerifiedRoot | None:
    """The verified copy under today's generation binding; None where nothing lies here.

    Raises the kinds of BundleError naming the file, BindingChanged where a bundle is foreign to the binding.
    """
    folder = bundles_folder(data_dir, experiment.experiment_id)
    if folder.is_symlink():
        raise BundleTampered(f"{folder}", got="a symbolic link", need="a folder of its own")
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    return verify_root(folder, experiment.experiment_id, bind(experiment))
