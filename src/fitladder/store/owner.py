"""The owner file of a root: to which experiment it belongs, read by whoever writes to it or verifies it."""

import os
from pathlib import Path
from typing import Literal

from fitladder.errors import RootRefused
from fitladder.files.atomic import read_plain
from fitladder.files.sealed_json import parse_sealed
from fitladder.frozen import Frozen, Identifier, Sha256
from fitladder.records.layout import OWNER

__all__ = ["Owner", "load_owner"]

MAX_OWNER_BYTES = 1 << 16


class Owner(Frozen):
    """To whom a root belongs. `root_id` tells two roots of one experiment apart."""

    schema_version: Literal[1]
    experiment_id: Identifier
    root_id: Sha256


def load_owner(root: Path, experiment_id: str) -> Owner | None:
    """The owner of a root, None where no such file stands: a copy has none.

    Raises RootRefused where it is a link (dangling or not), no plain file of its own, or names another
    experiment; BundleTampered where it is no owner file.
    """
    path = root / OWNER
    if not os.path.lexists(path):
        return None
    data = read_plain(path, max_bytes=MAX_OWNER_BYTES, error=RootRefused)
    owner = parse_sealed(Owner, data, where=str(path))
    if owner.experiment_id != experiment_id:
        raise RootRefused(
            f"{root} belongs to another experiment", got=owner.experiment_id, need=experiment_id
        )
    return owner
