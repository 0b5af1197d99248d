"""Statement of the files that lie here, and the comparison of an export with them.

Reads a root or its copy and the data folder, and hashes every file that a subject names; nothing else is
needed, params.yaml neither.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fitladder.canonical import sha256_bytes
from fitladder.errors import BundleTampered
from fitladder.export.manifest import Manifest, build_manifest
from fitladder.export.statement import Statement, build_statement
from fitladder.files.atomic import read_plain
from fitladder.files.file_record import FileRecord
from fitladder.records.experiment import Experiment
from fitladder.records.layout import CATALOG, CHECKPOINTS
from fitladder.store.verify_root import VerifiedRoot, verify_root

__all__ = ["FileCheck", "check_files", "check_statement", "export_root"]

_MADE_OF_BUNDLES = ("audits/{}/phases/*.json", "selection/{}.json", "semantics/{}.json")


@dataclass(frozen=True)
class FileCheck:
    """One subject against the file of its name; `refusal` is None where size and SHA-256 match."""

    name: str
    bytes: int
    refusal: BundleTampered | None


def export_root(root: Path, experiment: Experiment, data: Path) -> Statement:
    """Verify a root, or its copy, and state it.

    Args:
        root: the artifact root of `experiment`, or the copy that DVC carries.
        experiment: the registered experiment.
        data: the data folder; its audits, selection and semantics of this experiment are stated too.

    Raises the kinds of BundleError naming the file.
    """
    found = verify_root(root, experiment.experiment_id)
    patterns = [pattern.format(experiment.experiment_id) for pattern in _MADE_OF_BUNDLES]
    audits = sorted(path.relative_to(data).as_posix() for one in patterns for path in data.glob(one))
    return _statement(found, data, audits, build_manifest(experiment, found))


def check_files(statement: Statement, root: Path, data: Path, *, where: str) -> tuple[FileCheck, ...]:
    """Every subject against the file of its name, in order; a missing or different file is in the result.

    Args:
        statement: of a checked envelope.
        root: the root or copy that holds the subjects below `bundles/<experiment>/`.
        data: the data folder that holds the audits.
        where: names the export in messages.

    Raises BundleTampered where a subject is neither in the root nor an audit of the predicate, before any
    file is read.
    """
    prefix = f"bundles/{statement.predicate.experiment_id}/"
    for name in statement.files:
        is_known = name.startswith(prefix) or name in statement.predicate.audits
        if ".." in name.split("/") or name.startswith("/") or not is_known:
            raise BundleTampered(f"{where}: subject {name}", need=f"{prefix}... or an audit of the predicate")
    found = []
    for name, need in statement.files.items():
        path = root / name.removeprefix(prefix) if name.startswith(prefix) else data / name
        found.append(FileCheck(name, need.bytes, _refusal(path, need, where)))
    return tuple(found)


def check_statement(statement: Statement, root: Path, data: Path, *, where: str) -> None:
    """The root, verified whole, gives this statement and no other; its manifest is taken as stated.

    Args:
        statement: one whose files all match, by `check_files`.
        root: the root or copy that holds the subjects below `bundles/<experiment>/`.
        data: the data folder that holds the audits.
        where: names the export in messages.

    Raises BundleTampered naming a file that the statement lacks, or the predicate.
    """
    chain = statement.predicate
    found = verify_root(root, chain.experiment_id)
    now = _statement(found, data, chain.audits, chain.manifest)
    if now != statement:
        odd = sorted(set(now.files) ^ set(statement.files))
        raise BundleTampered(
            f"{where} is not the export of {root}",
            got=f"{odd[0]} besides" if odd else "another predicate",
            do="export again, or ask whoever made it",
        )


def _statement(found: VerifiedRoot, data: Path, audits: Iterable[str], manifest: Manifest) -> Statement:
    root = found.root
    names = [CATALOG]
    if (root / CHECKPOINTS).is_dir():
        names += [f"{CHECKPOINTS}/{path.name}" for path in sorted((root / CHECKPOINTS).iterdir())]
    return build_statement(
        found,
        {name: _record(root / name) for name in names},
        {name: _record(data / name) for name in audits},
        manifest,
    )


def _refusal(path: Path, need: FileRecord, where: str) -> BundleTampered | None:
    try:
        found = _record(path)
    except BundleTampered as refusal:
        return refusal
    if found.sha256 != need.sha256:
        return BundleTampered(f"{path}: SHA-256", got=found.sha256, need=f"{need.sha256} by {where}")
    if found.bytes != need.bytes:
        return BundleTampered(f"{path}: bytes", got=found.bytes, need=f"{need.bytes} by {where}")
    return None


def _record(path: Path) -> FileRecord:
    data = read_plain(path)
    return FileRecord(bytes=len(data), sha256=sha256_bytes(data))
