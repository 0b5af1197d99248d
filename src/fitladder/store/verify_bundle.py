"""Verification of one bundle as this phase at this rung of this experiment.

Every file's raw bytes are read once, hashed and then parsed, so that what was verified is what is used.
Nothing is decoded to text and nothing is repaired.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fitladder.canonical import canonical_sha256, sha256_bytes
from fitladder.errors import BundleError, BundlePartial, BundleTampered
from fitladder.files.atomic import check_folder, read_plain
from fitladder.files.file_record import FileRecord, file_record_of
from fitladder.files.sealed_json import parse_sealed
from fitladder.records.binding import Binding
from fitladder.records.bundle_key import BundleKey
from fitladder.records.layout import (
    BUNDLE_FILES,
    ENGINE,
    PAYLOAD_FILES,
    PREFLIGHT,
    RECEIPT,
    SAMPLES,
    bundle_folder,
    parse_bundle_folder,
)
from fitladder.records.preflight import EngineMeta, Preflight
from fitladder.records.receipt import Receipt
from fitladder.registry.binding import check_generation
from fitladder.sampling.parquet import COLUMNS, SampleTable, read_columns
from fitladder.sampling.row_rules import check_rows
from fitladder.store.receipt import build_receipt

__all__ = [
    "VerifiedBundle",
    "VerifiedPreflight",
    "check_distinct",
    "recorded_binding",
    "verify_bundle",
    "verify_preflight",
]

MAX_RECORD_BYTES = 64 << 20  # of a JSON file; a samples file has the size its receipt says


@dataclass(frozen=True)
class VerifiedPreflight:
    """A preflight that stands where it says it stands."""

    folder: Path
    key: BundleKey
    preflight: Preflight
    file: FileRecord

    @property
    def relative_path(self) -> str:
        """Its folder below the root."""
        return bundle_folder(self.key, self.preflight.attempt)


@dataclass(frozen=True)
class VerifiedBundle:
    """A complete bundle, every byte of it checked against its receipt.

    `files` holds the digests of all four files, the receipt's too. `samples` was decoded from the very
    bytes that were hashed.
    """

    folder: Path
    key: BundleKey
    preflight: Preflight
    engine: EngineMeta
    receipt: Receipt
    files: dict[str, FileRecord]
    samples: SampleTable = field(repr=False)

    @property
    def relative_path(self) -> str:
        """Its folder below the root."""
        return bundle_folder(self.key, self.preflight.attempt)

    def columns(self, names: Sequence[str]) -> SampleTable:
        """The asked sample columns and no other, see samples.COLUMNS."""
        return self.samples.select(names)


def verify_preflight(
    folder: Path, key: BundleKey, expected_binding: Binding | None = None
) -> VerifiedPreflight:
    """The preflight in a bundle's folder. Raises BundleTampered naming the file, BindingChanged as below."""
    _check_place(folder, key)
    path = folder / PREFLIGHT
    data = read_plain(path, max_bytes=MAX_RECORD_BYTES)
    preflight = _parse_preflight(data, path, key)
    if expected_binding is not None:
        check_generation(preflight.binding, expected_binding, where=str(folder))
    return VerifiedPreflight(folder, key, preflight, file_record_of(data))


def verify_bundle(folder: Path, key: BundleKey, expected_binding: Binding | None = None) -> VerifiedBundle:
    """The complete bundle in `folder`, which must be the place of `key`.

    Raises BundlePartial where there is no receipt, BundleTampered naming the file, what was found and what
    was needed otherwise, BindingChanged where it was made under another generation binding than expected.
    """
    _check_place(folder, key)
    _check_names(folder)
    receipt_path = folder / RECEIPT
    receipt_bytes = read_plain(receipt_path, max_bytes=MAX_RECORD_BYTES)
    receipt = parse_sealed(Receipt, receipt_bytes, where=str(receipt_path))
    _check_key(receipt_path, receipt.key, key)
    data = {name: _read_bound(folder / name, receipt.files[name]) for name in PAYLOAD_FILES}

    preflight = _parse_preflight(data[PREFLIGHT], folder / PREFLIGHT, key)
    engine = parse_sealed(EngineMeta, data[ENGINE], where=str(folder / ENGINE))
    _check_key(folder / ENGINE, engine.key, key)
    samples = read_columns(data[SAMPLES], COLUMNS, where=str(folder / SAMPLES))
    _check_key(folder / SAMPLES, samples.key, key)
    check_rows(samples, preflight, where=str(folder / SAMPLES))
    _check_receipt(receipt_path, receipt, preflight, samples, engine)
    if expected_binding is not None:
        check_generation(preflight.binding, expected_binding, where=str(folder))
    files = {**receipt.files, RECEIPT: file_record_of(receipt_bytes)}
    return VerifiedBundle(folder, key, preflight, engine, receipt, files, samples)


def recorded_binding(folder: Path) -> Binding:
    """The binding that a bundle's folder was made under, complete or not. Raises BundleTampered."""
    path = folder / PREFLIGHT
    preflight = parse_sealed(Preflight, read_plain(path, max_bytes=MAX_RECORD_BYTES), where=str(path))
    _check_place(folder.absolute(), preflight.key)
    _check_binding(path, preflight)
    return preflight.binding


def check_distinct(found: Sequence[VerifiedBundle | VerifiedPreflight]) -> None:
    """No two places may share samples or a GO. Raises BundleTampered naming both."""
    seen: dict[tuple[str, str], Path] = {}
    for one in found:
        marks = [("GO", one.preflight.go_sha256)]
        if isinstance(one, VerifiedBundle):
            marks.append(("samples", one.files[SAMPLES].sha256))
        for what, digest in marks:
            other = seen.setdefault((what, digest), one.folder)
            if other != one.folder:
                raise BundleTampered(
                    f"{one.folder} has the {what} of another bundle", got=digest, need=f"only in {other}"
                )


def _check_place(folder: Path, key: BundleKey) -> None:
    for path in (folder, folder.parent):
        check_folder(path)
    place, _ = parse_bundle_folder(key.experiment_id, folder.parent.name, folder.name)
    if place != key:
        raise BundleTampered(f"{folder} is the place of another bundle", got=place, need=key)


def _check_names(folder: Path) -> None:
    try:
        names = sorted(os.listdir(folder))
    except OSError as failure:
        raise BundleTampered(f"{folder} cannot be read", got=failure.strerror) from failure
    if RECEIPT not in names:
        raise BundlePartial(
            f"{folder} has no receipt: incomplete, nothing may be read from it",
            got=", ".join(names) or "nothing",
            need=RECEIPT,
        )
    unknown = [name for name in names if name not in BUNDLE_FILES]
    if unknown:
        raise BundleTampered(f"{folder / unknown[0]!s} belongs to no bundle", need=", ".join(BUNDLE_FILES))
    missing = [name for name in BUNDLE_FILES if name not in names]
    if missing:
        raise BundleTampered(f"{folder / missing[0]} is missing", got="a receipt for it", need="the file")


def _read_bound(path: Path, need: FileRecord) -> bytes:
    data = read_plain(path)
    if len(data) != need.bytes:
        raise BundleTampered(f"{path}: size", got=f"{len(data)} bytes", need=f"{need.bytes} bytes")
    found = sha256_bytes(data)
    if found != need.sha256:
        raise BundleTampered(f"{path}: SHA-256", got=found, need=need.sha256)
    return data


def _check_key(path: Path, found: BundleKey, need: BundleKey) -> None:
    if found != need:
        raise BundleTampered(f"{path} belongs to another bundle", got=found, need=need)


def _parse_preflight(data: bytes, path: Path, key: BundleKey) -> Preflight:
    preflight = parse_sealed(Preflight, data, where=str(path))
    _check_key(path, preflight.key, key)
    _, attempt = parse_bundle_folder(key.experiment_id, path.parent.parent.name, path.parent.name)
    if preflight.attempt != attempt:
        raise BundleTampered(f"{path} is another attempt's", got=preflight.attempt, need=attempt)
    _check_binding(path, preflight)
    return preflight


def _check_binding(path: Path, preflight: Preflight) -> None:
    """The recorded binding must name its own experiment and hash to what it says."""
    binding = preflight.binding
    if binding.experiment_id != preflight.key.experiment_id:
        raise BundleTampered(
            f"{path}: binding of another experiment",
            got=binding.experiment_id,
            need=preflight.key.experiment_id,
        )
    body = binding.model_dump(mode="json")
    for name, parts in (
        ("binding_sha256", set(body) - {"binding_sha256"}),
        ("generation_sha256", set(body) - {"binding_sha256", "generation_sha256", "decision_code"}),
    ):
        need = canonical_sha256({part: body[part] for part in parts})
        if body[name] != need:
            raise BundleTampered(f"{path}: {name} does not fit its parts", got=body[name], need=need)


def _check_receipt(
    path: Path, receipt: Receipt, preflight: Preflight, samples: SampleTable, engine: EngineMeta
) -> None:
    try:
        need = build_receipt(preflight, samples, engine, receipt.files, noted_at_s=receipt.noted_at_s)
    except ValueError as failure:
        raise BundleError(f"{path}: no receipt fits these files", got=failure) from failure
    found, wanted = receipt.model_dump(mode="json"), need.model_dump(mode="json")
    for name, value in wanted.items():
        if found[name] != value:
            raise BundleTampered(f"{path}: field {name}", got=found[name], need=value)
