"""Sealed records: one form of bytes for a record, and a reader that takes no other.

Canonical JSON, one newline, and a seal: the SHA-256 of the rest. A seal finds accidents in a file that no
other file binds yet; it proves nothing about who wrote it.
"""

import math
from typing import Any, TypeVar

from fitladder.canonical import canonical_bytes, canonical_sha256, parse_json, parse_model
from fitladder.errors import BundleError, BundleTampered, InputRefused
from fitladder.frozen import Frozen

__all__ = ["SEAL", "parse_sealed", "render_sealed"]

SEAL = "seal_sha256"
_Record = TypeVar("_Record", bound=Frozen)


def render_sealed(record: Frozen) -> bytes:
    """The bytes of a record. Raises BundleError where they could not be read back as the same bytes."""
    where = type(record).__name__
    try:
        _check_finite(record.model_dump())  # as JSON, pydantic would turn them into null
        plain = record.model_dump(mode="json")
        data = canonical_bytes({**plain, SEAL: canonical_sha256(plain)}) + b"\n"
    except (ValueError, InputRefused) as failure:  # ValueError: pydantic met a value that has no JSON
        raise BundleError(
            f"{where} has no strict JSON", got=failure, need="finite numbers and plain data"
        ) from failure
    parse_sealed(type(record), data, where=where)
    return data


def _check_finite(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"the number {value}")
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            _check_finite(item)


def parse_sealed(model: type[_Record], data: bytes, *, where: str) -> _Record:
    """The record in a file's bytes. Raises BundleTampered naming `where` and what is off.

    Refused: JSON that is not strict, unknown or missing fields, a broken seal, and any byte that the
    canonical form would not have (spaces, CRLF, another key order).
    """
    plain = parse_json(data, where=where, error=BundleTampered)
    if not isinstance(plain, dict) or SEAL not in plain:
        raise BundleTampered(f"{where}: field {SEAL}", got="none", need="a sealed record")
    found = plain.pop(SEAL)
    need = canonical_sha256(plain)
    if found != need:
        raise BundleTampered(f"{where}: the seal does not fit the content", got=found, need=need)
    record = parse_model(model, plain, where=where, error=BundleTampered)
    canonical = canonical_bytes({**record.model_dump(mode="json"), SEAL: need}) + b"\n"
    if canonical != data:
        raise BundleTampered(
            f"{where}: not in canonical form",
            got=f"{len(data)} bytes",
            need=f"the {len(canonical)} bytes of its canonical JSON",
        )
    return record
