"""bundles@X: are the bundles that lie here whole, this experiment's, and of today's binding? It verifies.

DVC runs it on every `dvc repro`; nothing is generated, repaired or deleted by it. Where no phase has run yet
the folder is empty, and may be only where dvc.lock records none.
"""

from itertools import zip_longest
from pathlib import Path

from fitladder.bundles.inventory import VerifiedRoot
from fitladder.bundles.verify import VerifiedBundle, VerifiedPreflight
from fitladder.canonical import read_json
from fitladder.errors import BundleError, LineageError
from fitladder.lineage.load import load_bundles
from fitladder.lineage.lockfile import load_lock
from fitladder.lineage.places import bundles_folder, prompts_folder
from fitladder.protocol.registry import Registry

__all__ = ["check_bundles", "check_prompts"]

LOCK_FILE = "dvc.lock"


def check_bundles(registry: Registry, experiment_id: str, data_dir: Path) -> str:
    """Verify every bundle and the catalog. Raises BundleError's kinds, BindingChanged, LineageError."""
    experiment = registry.experiment(experiment_id)
    folder = bundles_folder(data_dir, experiment_id)
    _check_recorded(folder, data_dir.parent / LOCK_FILE, experiment_id)
    found = load_bundles(data_dir, experiment)
    if found is None:
        folder.mkdir(parents=True, exist_ok=True)
        return f"{experiment_id}: no phase has run yet"
    check_prompts(found, data_dir)
    tree = found.catalog.tree
    return f"{experiment_id}: {len(found.bundles)} bundles verified, {tree.files} files, tree {tree.sha256}"


def check_prompts(found: VerifiedRoot, data_dir: Path) -> None:
    """Every phase was given exactly the prompts of `data/prompts/X`, in order. Raises BundleError."""
    folder = prompts_folder(data_dir, found.catalog.experiment_id)
    everything: list[VerifiedBundle | VerifiedPreflight] = [*found.bundles, *found.preflights]
    for one in everything:
        path = folder / f"{one.key.arm}.json"
        need = [
            (row["id"], row["rendered_prompt_sha256"], row["prompt_tokens"])
            for row in read_json(path, error=BundleError)
        ]
        got = [(row.record_id, row.rendered_sha256, row.prompt_tokens) for row in one.preflight.prompts]
        if got != need:
            odd = next((pair for pair in zip_longest(got, need) if pair[0] != pair[1]), (None, None))
            raise BundleError(f"{one.folder}: prompts are not those of {path}", got=odd[0], need=odd[1])


def _check_recorded(folder: Path, lock_file: Path, experiment_id: str) -> None:
    """What dvc.lock records must be here: an absent bundle is never taken for one that was not made yet."""
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
                need=f"{out.files} files, md5 {out.md5}",
                do=f"run `dvc pull bundles@{experiment_id}`",
            )
