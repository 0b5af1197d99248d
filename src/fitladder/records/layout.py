"""Names of the files and folders of an experiment's artifact root, both ways.

It opens nothing. The copy that DVC carries has the same layout, less the dot files.
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
    "bundle_folder",
    "checkpoint_name",
    "parse_bundle_folder",
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
_LATER_ATTEMPT = re.compile(r"([a-z]+)\.attempt_([2-9]|[1-9][0-9]{1,3})")


def checkpoint_name(checkpoint: int) -> str:
    """File name of an old catalog: `000003.json`."""
    return f"{checkpoint:06d}.json"


def bundle_folder(key: BundleKey, attempt: int = 1) -> str:
    """Folder of one attempt below the root, POSIX style.

    `think_64/probe` for attempt 1, `think_64/probe.attempt_2` and on for a phase that was interrupted.
    """
    first = f"think_{key.thinking_budget_tokens}/{key.phase}"
    return first if attempt == 1 else f"{first}.attempt_{attempt}"


def parse_bundle_folder(experiment_id: str, rung_folder: str, phase_folder: str) -> tuple[BundleKey, int]:
    """Key and attempt of the folder `<root>/<rung_folder>/<phase_folder>`; the inverse of `bundle_folder`.

    Raises BundleError on a name that `bundle_folder` never gives.
    """
    rung, later = _RUNG_FOLDER.fullmatch(rung_folder), _LATER_ATTEMPT.fullmatch(phase_folder)
    budget: Any = int(rung.group(1)) if rung else None
    phase: Any = later.group(1) if later else phase_folder
    try:
        key = BundleKey(experiment_id=experiment_id, thinking_budget_tokens=budget, phase=phase)
        return key, int(later.group(2)) if later else 1
    except ValidationError as failure:
        raise BundleError(
            "a folder that no bundle can have",
            got=f"{rung_folder}/{phase_folder}",
            need="think_<budget>/<probe|base|designed>, .attempt_<n> behind it from the second on",
        ) from failure
