"""Stage bundles@X: verify that the bundles here are whole, this experiment's, and of today's binding.

DVC runs it on every `dvc repro`; nothing is generated, repaired or deleted by it. Where no phase has run yet
the folder is empty, and may be only where dvc.lock records none.
"""

from itertools import zip_longest
from pathlib import Path

from fitladder.canonical import read_json
from fitladder.errors import BundleError
from fitladder.evidence.checkout_bundles import begun, load_bundles
from fitladder.records.registry import Registry
from fitladder.registry.data_paths import bundles_folder, prompts_folder
from fitladder.store.verify_root import VerifiedRoot

__all__ = ["check_bundles", "check_prompts"]


def check_bundles(registry: Registry, experiment_id: str, data_dir: Path) -> str:
    """Verify every bundle and the catalog. Raises BundleError's kinds, BindingChanged, LineageError."""
    experiment = registry.experiment(experiment_id)
    found = load_bundles(data_dir, experiment)
    if found is None:
        bundles_folder(data_dir, experiment_id).mkdir(parents=True, exist_ok=True)
        return f"{experiment_id}: no phase has run yet"
    check_prompts(found, data_dir)
    tree = found.catalog.tree
    return f"{experiment_id}: {len(found.bundles)} bundles verified, {tree.files} files, tree {tree.sha256}"


def check_prompts(found: VerifiedRoot, data_dir: Path) -> None:
    """Every phase was given exactly the prompts of `data/prompts/X`, in order. Raises BundleError."""
    folder = prompts_folder(data_dir, found.catalog.experiment_id)
    for one in begun(found):
        path = folder / f"{one.key.arm}.json"
        need = [
            (row["id"], row["rendered_prompt_sha256"], row["prompt_tokens"])
            for row in read_json(path, error=BundleError)
        ]
        got = [(row.record_id, row.rendered_sha256, row.prompt_tokens) for row in one.preflight.prompts]
        if got != need:
            odd = next((pair for pair in zip_longest(got, need) if pair[0] != pair[1]), (None, None))
            raise BundleError(f"{one.folder}: prompts are not those of {path}", got=odd[0], need=odd[1])
