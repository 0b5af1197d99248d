"""Log and print lines about compilation that appear while tokens are sampled.

Kernels that vLLM, Triton or torch compile then lengthen the measured generation time, so the lines are
recorded as warnings of the generation. Knows those libraries by their loggers' names and words only.
"""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

__all__ = ["listen"]

_LOGGERS = ("vllm", "torch._dynamo", "torch._inductor", "torch.fx", "flashinfer", "triton", "py.warnings")
_WORDS = re.compile(r"\bjit\b|compil|autotun|captur\w* cuda ?graph", re.IGNORECASE)
MAX_LINES = 200


class _Collector(logging.Handler):
    """Keeps lines that speak of compilation, 300 characters of each."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.INFO)
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self.note(f"{record.name}: {record.getMessage()}")

    def note(self, text: str) -> None:
        line = " ".join(text.split())[:300]
        if line and len(self.lines) < MAX_LINES and _WORDS.search(line):
            self.lines.append(line)


class _Printed:
    """Standard output that passes everything on and is searched too: Triton prints its autotuning."""

    def __init__(self, stream: TextIO, collector: _Collector) -> None:
        self._stream, self._collector = stream, collector

    def write(self, text: str) -> int:
        self._collector.note(text)
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()


@contextmanager
def listen(lines: list[str]) -> Iterator[None]:
    """While open, append each line about compilation to `lines`, up to MAX_LINES entries in all."""
    collector = _Collector(lines)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addHandler(collector)
    try:
        with redirect_stdout(_Printed(sys.stdout, collector)):
            yield
    finally:
        for logger in loggers:
            logger.removeHandler(collector)
