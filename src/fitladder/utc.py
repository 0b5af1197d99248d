"""One way to write a moment down: explicit UTC, whole seconds, `2026-01-02T03:04:05Z`.

Text in every record and statement, so that a hash or a signature never depends on a time zone.
"""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator

__all__ = ["UTC_PATTERN", "Utc", "format_utc", "parse_utc"]

UTC_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"
_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def parse_utc(text: str) -> datetime:
    """An aware datetime. Raises ValueError where the text is not exactly this form, or no such moment."""
    moment = datetime.strptime(text, _FORMAT).replace(tzinfo=UTC)
    if format_utc(moment) != text:
        raise ValueError(f"got {text!r}, need UTC as 2026-01-02T03:04:05Z")
    return moment


def format_utc(moment: datetime) -> str:
    """Whole seconds, cut. Raises ValueError for a naive datetime."""
    if moment.tzinfo is None:
        raise ValueError("a moment without a time zone cannot be written as UTC")
    return moment.astimezone(UTC).strftime(_FORMAT)


def _valid(text: str) -> str:
    parse_utc(text)
    return text


Utc = Annotated[str, AfterValidator(_valid)]
