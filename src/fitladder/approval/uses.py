"""Record of the GOs used on this machine and of their roots. Kept outside the root, whose loss frees none.

`data/approvals/<experiment>.uses.jsonl`, chained as the approvals are. A preflight is the use; one line is
written just before it, so that a crash between the two costs a GO and never gives one twice, and one just
after it, so that an older copy of the root, from before the phase, is no way to begin it a second time.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fitladder.canonical import canonical_bytes
from fitladder.errors import GoRefused
from fitladder.files.jsonl_chain import append_bytes, locked, next_place, parse_links, read_lines
from fitladder.records.bundle_key import BundleKey
from fitladder.records.go_use import Use

__all__ = ["check_begun", "check_unused", "load_uses", "record_begun", "record_use", "uses_path"]

_WHAT = "the record of used GOs"


def uses_path(approvals: Path, experiment_id: str) -> Path:
    """Where it lies below `data/approvals`."""
    return approvals / f"{experiment_id}.uses.jsonl"


def load_uses(path: Path, experiment_id: str) -> tuple[Use, ...]:
    """Every use, in order; none where there is no file. Raises GoRefused with the line."""
    data = read_lines(path, GoRefused)
    return parse_links(data, Use, experiment_id, where=str(path), what=_WHAT, error=GoRefused)


def check_unused(uses: tuple[Use, ...], go_sha256: str, root_id: str) -> None:
    """This GO went into no preflight, and every earlier one into this root. Raises GoRefused."""
    for use in uses:
        if use.go_sha256 == go_sha256:
            raise GoRefused(
                f"this Go for {use.key} was used already",
                got=f"{go_sha256} in root {use.root_id}",
                need="a GO that no preflight names",
                do="one GO is one use; ask again",
            )
        if use.root_id != root_id:
            raise GoRefused(
                f"{use.key} was begun in another root",
                got=f"root id {root_id}",
                need=use.root_id,
                do="name the root that holds it; where it is lost, see `fitladder new --help`",
            )


def check_begun(uses: tuple[Use, ...], preflight_sha256s: Collection[str]) -> None:
    """Every preflight that was written still stands in the root. Raises GoRefused naming the first gone."""
    for use in uses:
        if use.preflight_sha256 is not None and use.preflight_sha256 not in preflight_sha256s:
            raise GoRefused(
                f"{use.key} was begun here, and the root no longer holds it",
                got="a root from before it",
                need=f"the preflight {use.preflight_sha256}",
                do="bring the root back; a lost one needs a follow-up (see `fitladder new --help`)",
            )


def record_use(path: Path, key: BundleKey, *, go_sha256: str, root_id: str) -> None:
    """Append a use that `check_unused` still allows, under the file's lock. Raises GoRefused."""
    with locked(path, GoRefused) as descriptor:
        uses = load_uses(path, key.experiment_id)
        check_unused(uses, go_sha256, root_id)
        line = _line(uses, key, {"go_sha256": go_sha256, "root_id": root_id})
        append_bytes(descriptor, path, line, GoRefused)


def record_begun(path: Path, key: BundleKey, *, go_sha256: str, root_id: str, preflight_sha256: str) -> None:
    """Append that the preflight of a use was written. Raises GoRefused."""
    hashes = {"go_sha256": go_sha256, "root_id": root_id, "preflight_sha256": preflight_sha256}
    with locked(path, GoRefused) as descriptor:
        line = _line(load_uses(path, key.experiment_id), key, hashes)
        append_bytes(descriptor, path, line, GoRefused)


def _line(uses: tuple[Use, ...], key: BundleKey, hashes: Mapping[str, Any]) -> bytes:
    use = Use(**next_place(uses, key.experiment_id), key=key, **hashes)
    return canonical_bytes(use) + b"\n"
