"""Where does each file of an experiment's root stand, and whose name is that?

Only names and shapes; it opens nothing. The copy that DVC carries has the same layout, less the dot files.
"""

import re
from typing import Any

from pydantic import ValidationError

from fitladder.errors import BundleError
from fitladder.records.bundle_key import BundleKey

__all__ = [
    "BUNDLE_FILES",
    "CATALOG",
    "CHECKPOINTS",
    "ENGINE",
    "LOCK",
    "OWNER",
    "PAYLOAD_FILES",
    "PREFLIGHT",
    "RECEIPT",
    "SAMPLES",
    "checkpoint_name",
    "place_of",
    "spot_of",
]

PREFLIGHT = "preflight.json"
SAMPLES = "samples.parquet"
ENGINE = "engine.json"
RECEIPT = "receipt.json"
PAYLOAD_FILES = (PREFLIGHT, SAMPLES, ENGINE)  # in the order in which they are written; the receipt binds them
BUNDLE_FILES = (*PAYLOAD_FILES, RECEIPT)

CATALOG = "catalog.json"
CHECKPOINTS = "checkpoints"  # every catalog before the current one
LOCK = ".lock"
OWNER = ".owner.json"

_RUNG_FOLDER = re.compile(r"think_([1-9][0-9]{0,17})")
_AGAIN = re.compile(r"([a-z]+)\.attempt_([2-9]|[1-9][0-9]{1,3})")


def checkpoint_name(checkpoint: int) -> str:
    """File name of an old catalog: `000003.json`."""
    return f"{checkpoint:06d}.json"


def place_of(key: BundleKey, attempt: int) -> str:
    """Folder of one attempt below the root: `think_64/probe`, then `think_64/probe.attempt_2` and on."""
    return key.relative_path if attempt == 1 else f"{key.relative_path}.attempt_{attempt}"


def spot_of(experiment_id: str, rung_folder: str, phase_folder: str) -> tuple[BundleKey, int]:
    """Key and attempt that `<root>/<rung_folder>/<phase_folder>` stands for. Raises BundleError on others."""
    matched, again = _RUNG_FOLDER.fullmatch(rung_folder), _AGAIN.fullmatch(phase_folder)
    budget: Any = int(matched.group(1)) if matched else None
    phase: Any = again.group(1) if again else phase_folder
    try:
        key = BundleKey(experiment_id=experiment_id, thinking_budget_tokens=budget, phase=phase)
        return key, int(again.group(2)) if again else 1
    except ValidationError as failure:
        raise BundleError(
            "a folder that no bundle can have",
            got=f"{rung_folder}/{phase_folder}",
            need="think_<budget>/<probe|base|designed>, .attempt_<n> behind it from the second on",
        ) from failure
