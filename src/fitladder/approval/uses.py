"""Which GOs were used on this machine, and in which root? Kept outside the root, whose loss frees none.

`data/approvals/<experiment>.uses.jsonl`, chained as the approvals are. A preflight is the use; this line is
written just before it, so that a crash between the two costs a GO and never gives one twice.
"""

from pathlib import Path

from fitladder.canonical import canonical_bytes
from fitladder.chained import GENESIS, Link, append_bytes, locked, parse_links
from fitladder.errors import GoRefused
from fitladder.protocol.key import BundleKey
from fitladder.protocol.settings import Sha256

__all__ = ["Use", "check_unused", "load_uses", "record_use", "uses_path"]

_WHAT = "the record of used GOs"


class Use(Link):
    """One GO went into the preflight of one phase in one root."""

    go_sha256: Sha256
    root_id: Sha256
    key: BundleKey


def uses_path(approvals: Path, experiment_id: str) -> Path:
    """Where it lies below `data/approvals`."""
    return approvals / f"{experiment_id}.uses.jsonl"


def load_uses(path: Path, experiment_id: str) -> tuple[Use, ...]:
    """Every use, in order; none where there is no file. Raises GoRefused with the line."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise GoRefused(f"{path} cannot be read", got=error.strerror) from error
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
                do="name the root that holds it; where it is lost, register a follow-up: `fitladder new`",
            )


def record_use(path: Path, key: BundleKey, *, go_sha256: str, root_id: str) -> None:
    """Append a use that `check_unused` still allows, under the file's lock. Raises GoRefused."""
    with locked(path, GoRefused) as descriptor:
        uses = load_uses(path, key.experiment_id)
        check_unused(uses, go_sha256, root_id)
        use = Use(
            schema_version=1,
            experiment_id=key.experiment_id,
            sequence=len(uses) + 1,
            previous_sha256=uses[-1].sha256 if uses else GENESIS,
            go_sha256=go_sha256,
            root_id=root_id,
            key=key,
        )
        append_bytes(descriptor, path, canonical_bytes(use) + b"\n", GoRefused)
