"""Numbers and untrusted text as the report prints them.

Every page, table, chart and the Markdown twin print through here, so that one figure never has two forms.
"""

import re
from collections.abc import Sequence
from fractions import Fraction

__all__ = [
    "NOT_RECORDED",
    "NOT_RUN",
    "byte_size",
    "count",
    "duration",
    "elide",
    "fixed",
    "no_one_may_conclude",
    "percent",
    "short_sha",
    "sizes",
    "visible",
]

NOT_RUN = "not run"
NOT_RECORDED = "not recorded"
# Controls, lone surrogates, bidirectional overrides and invisible joiners would change what a reader sees.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufff9-\ufffb]"
)


def visible(text: str) -> str:
    r"""Text with every character that cannot be seen or encoded written out, as `\u{d835}`."""
    return _UNSEEN.sub(lambda match: f"\\u{{{ord(match.group()):x}}}", text)


def count(value: int | None) -> str:
    """`963,072`, or `not recorded`."""
    return NOT_RECORDED if value is None else f"{value:,}"


def fixed(value: float | None, digits: int = 3) -> str:
    """`value` with `digits` decimals, as `5,012.451`, or `not recorded`."""
    return NOT_RECORDED if value is None else f"{value:,.{digits}f}"


def percent(value: float | Fraction, digits: int = 1) -> str:
    """The fraction `value` (1 is all) with `digits` decimals, as `77.1 %`, with a no-break space."""
    return f"{float(value) * 100:.{digits}f}\u00a0%"


def duration(seconds: float) -> str:
    """`1 h 23 min`, `4 min 5 s` or `3.2 s`, to orient; the exact seconds are shown too."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    if whole >= 60:
        return f"{whole // 60} min {whole % 60} s"
    return f"{seconds:.1f} s"


def sizes(values: Sequence[int] | None) -> str:
    """Capture sizes as `1 2 4 8 16`; none at all as `none`."""
    if values is None:
        return NOT_RECORDED
    return " ".join(map(str, values)) or "none"


def byte_size(value: int) -> str:
    """Exact bytes, with a rounded unit where that helps."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if value >= scale:
            return f"{value:,} B ({value / scale:.1f} {unit})"
    return f"{value:,} B"


def no_one_may_conclude(limit: str) -> str:
    """A limit as one sentence: `That it helps.` becomes `No one may conclude that it helps.`"""
    opening, space, rest = limit.partition(" ")
    begins = opening.lower() if opening in ("That", "Anything") else f": {opening}"
    return f"No one may conclude{'' if begins.startswith(':') else ' '}{begins}{space}{rest}"


def short_sha(sha256: str | None) -> str:
    """The first 12 digits, for tables; the artifacts section has all 64."""
    return NOT_RECORDED if sha256 is None else sha256[:12]


def elide(text: str, limit: int) -> str:
    """At most `limit` characters of `text`, the middle left out."""
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"
