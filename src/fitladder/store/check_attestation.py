"""Do the files that lie here give this statement? It needs the files and nothing else.

It reads a root or its copy, the audits beside it, and hashes every byte that a subject names.
"""

from collections.abc import Iterable
from pathlib import Path

from fitladder.canonical import sha256_bytes
from fitladder.errors import BundleTampered
from fitladder.files.atomic import read_plain
from fitladder.files.file_record import FileRecord
from fitladder.records.layout import CATALOG, CHECKPOINTS
from fitladder.store.attestation import Statement, build_statement, parse_statement
from fitladder.store.verify_root import verify_root

__all__ = ["attest_root", "check_attestation", "find_audits", "load_statement"]

MAX_STATEMENT_BYTES = 64 << 20
_MADE_OF_BUNDLES = ("audits/{}/phases/*.json", "selection/{}.json", "semantics/{}.json")


def attest_root(root: Path, experiment_id: str, data: Path, audits: Iterable[str]) -> Statement:
    """Verify the root, or its copy, and state it together with these `audits` in the data folder."""
    found = verify_root(root, experiment_id)
    records = {CATALOG: _record(root / CATALOG)}
    if (root / CHECKPOINTS).is_dir():
        for path in sorted((root / CHECKPOINTS).iterdir()):
            records[f"{CHECKPOINTS}/{path.name}"] = _record(path)
    return build_statement(found, records, {name: _record(data / name) for name in audits})


def find_audits(data: Path, experiment_id: str) -> list[str]:
    """What lies in the data folder that was made of this experiment's bundles, relative and sorted."""
    patterns = [pattern.format(experiment_id) for pattern in _MADE_OF_BUNDLES]
    return sorted(path.relative_to(data).as_posix() for one in patterns for path in data.glob(one))


def load_statement(file: Path) -> Statement:
    """The statement in a file, its form checked and nothing else. Raises BundleTampered."""
    return parse_statement(read_plain(file, max_bytes=MAX_STATEMENT_BYTES), where=str(file))


def check_attestation(file: Path, root: Path, data: Path) -> Statement:
    """The statement in `file` is exactly what `root` and the named audits in `data` give today.

    Raises BundleTampered naming the file that is missing, further or different, with both hashes.
    """
    statement = load_statement(file)
    chain = statement.predicate
    prefix = f"bundles/{chain.experiment_id}/"
    for name, need in statement.files.items():
        inside = name.startswith(prefix)
        if ".." in name.split("/") or name.startswith("/") or not (inside or name in chain.audits):
            raise BundleTampered(f"{file}: subject {name}", need=f"{prefix}... or an audit of the predicate")
        path = root / name.removeprefix(prefix) if inside else data / name
        found = _record(path).sha256
        if found != need:
            raise BundleTampered(f"{path}: SHA-256", got=found, need=f"{need} by {file}")
    now = attest_root(root, chain.experiment_id, data, chain.audits)
    if now != statement:
        odd = sorted(set(now.files.items()) ^ set(statement.files.items()))
        raise BundleTampered(
            f"{file} is not the statement of {root}",
            got=f"{odd[0][0]} besides" if odd else "another predicate",
            do="attest again, or ask whoever made it",
        )
    return statement


def _record(path: Path) -> FileRecord:
    data = read_plain(path)
    return FileRecord(bytes=len(data), sha256=sha256_bytes(data))
