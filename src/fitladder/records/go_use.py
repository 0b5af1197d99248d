"""One line of the record of used GOs: which GO went into which preflight of which root."""

from fitladder.files.jsonl_chain import Link
from fitladder.frozen import Sha256
from fitladder.records.bundle_key import BundleKey

__all__ = ["Use"]


class Use(Link):
    """One GO went into the preflight of one phase in one root."""

    go_sha256: Sha256
    root_id: Sha256
    key: BundleKey
    preflight_sha256: Sha256 | None = None  # None: about to be written
