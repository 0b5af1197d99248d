"""Text from outside as records keep it: what UTF-8 or a text column cannot hold is escaped.

A lone surrogate in a log line or a stop reason must not cost the samples of its phase: it is written as
`\\uXXXX` and reads back equal.
"""

import re
from typing import Annotated

from pydantic import BeforeValidator, ValidationInfo

__all__ = ["EscapedText", "escape_text", "unescape_text"]

_UNSAFE = re.compile("[\\\\\x00\ud800-\udfff]")
_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")


def escape_text(text: str) -> str:
    r"""Backslash, NUL and lone surrogates as `\uXXXX`; everything else as it stands."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def unescape_text(escaped: str) -> str:
    """The text that `escape_text` was given."""
    return _ESCAPE.sub(lambda found: chr(int(found.group(1), 16)), escaped)


def _escape_when_built(value: object, info: ValidationInfo) -> object:
    # A value read from a file (JSON mode) was escaped when it was written.
    return escape_text(value) if isinstance(value, str) and info.mode == "python" else value


EscapedText = Annotated[str, BeforeValidator(_escape_when_built)]
