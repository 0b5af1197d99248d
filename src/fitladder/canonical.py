"""One way to turn a value into bytes, a digest, or an exact comparison.

Canonical JSON: keys sorted, separators `,` and `:`, UTF-8, no ASCII escaping except for lone
surrogates (they have no UTF-8 form). Strict reading refuses what other readers let through: NaN,
infinities (`1e400` too), duplicate keys, integers of absurd length. Rates are ratios of integers.
"""

import hashlib
import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from fitladder.errors import FitladderError, InputRefused

__all__ = [
    "Rate",
    "canonical_bytes",
    "canonical_sha256",
    "parse_json",
    "parse_model",
    "read_json",
    "sha256_bytes",
    "sha256_file",
]

MAX_INTEGER_DIGITS = 19  # int64; nothing registered here counts further
MAX_RATE_PLACES = 9  # times any number of ids still within int64
_SURROGATE = re.compile("[\ud800-\udfff]")
_Model = TypeVar("_Model", bound=BaseModel)


def canonical_bytes(value: Any) -> bytes:
    """Canonical JSON of plain data or a pydantic model. Raises InputRefused on non-finite numbers."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    try:
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise InputRefused(
            "value has no canonical JSON", got=error, need="finite numbers, no cycles"
        ) from error
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text).encode()


def canonical_sha256(value: Any) -> str:
    """SHA-256 (64 hex digits) over `canonical_bytes(value)`."""
    return sha256_bytes(canonical_bytes(value))


def sha256_bytes(data: bytes) -> str:
    """SHA-256 of bytes, 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's raw bytes, read in one pass; text mode and line endings play no part."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def parse_json(data: bytes | str, *, where: str, error: type[FitladderError] = InputRefused) -> Any:
    """Strict JSON: one document, finite numbers, unique keys, integers within int64.

    `where` names the file in messages, which name the field too; `error` is the class raised. A lone
    surrogate escape reads back as itself, so that rows with broken text survive a round trip.
    """

    odd: list[_Odd] = []

    def mark(got: str, need: str) -> "_Odd":
        odd.append(_Odd(got, need))
        return odd[-1]

    def pairs(items: list[tuple[str, Any]]) -> "dict[str, Any] | _Odd":
        seen: dict[str, Any] = {}
        for key, value in items:
            if key in seen:
                return mark(f"the key {key!r} twice in one object", "unique keys")
            seen[key] = value
        return seen

    def integer(digits: str) -> "int | _Odd":
        if len(digits.lstrip("-")) > MAX_INTEGER_DIGITS:
            return mark(f"an integer of {len(digits)} digits", f"at most {MAX_INTEGER_DIGITS}")
        return int(digits)

    def real(text: str) -> "float | _Odd":
        value = float(text)
        return value if math.isfinite(value) else mark(text[:40], "a finite number")

    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        document = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_int=integer,
            parse_float=real,
            parse_constant=lambda name: mark(name, "a finite number"),
        )
    except UnicodeDecodeError as failure:
        raise error(
            f"{where} is not strict JSON", got=f"bytes that are not UTF-8 at {failure.start}"
        ) from failure
    except json.JSONDecodeError as failure:
        raise error(
            f"{where} is not strict JSON",
            got=f"{failure.msg} at line {failure.lineno}, column {failure.colno}",
        ) from failure
    except RecursionError as failure:
        raise error(f"{where} is not strict JSON", got="nesting beyond Python's limit") from failure
    if odd:
        field, first = _first_odd(document)
        raise error(f"{where} is not strict JSON: field {field}", got=first.got, need=first.need)
    return document


@dataclass(frozen=True)
class _Odd:
    """What stands in a parsed document for a value that is refused, until its place is known."""

    got: str
    need: str


def _first_odd(document: Any) -> tuple[str, _Odd]:
    """Dotted path of the first refused value, in written order. A document has one when this is asked."""
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, _Odd):
            return path.removeprefix(".") or "(the whole document)", value
        children: list[tuple[str, Any]] = []
        if isinstance(value, dict):
            children = [(f"{path}.{name}", item) for name, item in value.items()]
        elif isinstance(value, list):
            children = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
        waiting.extend(reversed(children))
    raise AssertionError("no refused value in this document")  # pragma: no cover


def read_json(path: Path, *, error: type[FitladderError] = InputRefused) -> Any:
    """`parse_json` of a file; a missing or unreadable one is an `error` naming the path."""
    try:
        data = path.read_bytes()
    except OSError as failure:
        raise error(f"{path} cannot be read", got=failure.strerror or failure) from failure
    return parse_json(data, where=str(path), error=error)


def parse_model(
    model: type[_Model], value: Any, *, where: str, error: type[FitladderError] = InputRefused
) -> _Model:
    """Validate plain data strictly (no bool as int, no 5.0 as count); the first fault becomes one line."""
    try:
        return model.model_validate_json(canonical_bytes(value), strict=True)
    except InputRefused as failure:
        raise error(where, got=failure.got, need=failure.need) from failure
    except ValidationError as failure:
        faults = failure.errors(include_url=False)
        # a misspelt name is two faults, and the unknown name says more than the missing one
        first = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
        field = ".".join(str(part) for part in first["loc"]) or model.__name__
        need = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
        raise error(
            f"{where}: field {field}",
            got=None if isinstance(first.get("input"), dict) else repr(first.get("input"))[:120],
            need=need.partition(", need ")[2] if need.startswith("got ") and ", need " in need else need,
        ) from failure


@dataclass(frozen=True, order=True)
class Rate:
    """A registered threshold as an exact ratio, so that no comparison ever rounds."""

    value: Fraction

    @classmethod
    def parse(cls, text: str | float | int) -> "Rate":
        """From a decimal such as `0.05`. Raises ValueError outside [0, 1] or on a non-decimal."""
        try:
            exact = Decimal(str(text))
            places = exact.as_tuple().exponent
            if not isinstance(places, int) or not -MAX_RATE_PLACES <= places <= 0:
                raise ValueError
            value = Fraction(exact)
        except (InvalidOperation, ValueError, OverflowError) as failure:
            raise ValueError(
                f"got {text!r}, need a decimal between 0 and 1, at most {MAX_RATE_PLACES} places"
            ) from failure
        if not 0 <= value <= 1:
            raise ValueError(f"got {text!r}, need a decimal between 0 and 1")
        return cls(value)

    def share_is_below(self, count: int, total: int) -> bool:
        """count / total < rate, by integers; an empty total is below nothing."""
        return total > 0 and count * self.value.denominator < self.value.numerator * total

    def share_is_at_most(self, count: int, total: int) -> bool:
        """count / total <= rate, by integers; an empty total is within nothing."""
        return total > 0 and count * self.value.denominator <= self.value.numerator * total

    def is_reached_by(self, count: int, total: int) -> bool:
        """count / total >= rate, by integers; an empty total reaches nothing."""
        return total > 0 and count * self.value.denominator >= self.value.numerator * total

    def __str__(self) -> str:
        scaled, digits = self.value, 0
        while scaled.denominator != 1:
            scaled, digits = scaled * 10, digits + 1
        return f"{Decimal(scaled.numerator).scaleb(-digits):f}"
