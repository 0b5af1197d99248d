"""Clearing a root of what a writer that died left behind.

Two things are cleared: the second name of a file that is whole, and a torn record that had not taken effect
and cost nothing to make. Rows, engine metadata and receipts are never touched.
"""

import os
from pathlib import Path

from fitladder.files.atomic import temporary_name
from fitladder.records.layout import ENGINE, RECEIPT, SAMPLES

__all__ = ["clear_interrupted_writes"]

_KEPT = frozenset(temporary_name(name) for name in (SAMPLES, ENGINE, RECEIPT))


def clear_interrupted_writes(root: Path) -> None:
    """Clear a root after an interrupted write. Needs the root's lock; follows no link."""
    for folder, _, names in os.walk(root, followlinks=False):
        for name in names:
            if name.startswith(".") and name.endswith(".tmp"):
                _clear(Path(folder) / name)


def _clear(temporary: Path) -> None:
    final = temporary.with_name(temporary.name[1 : -len(".tmp")])
    if temporary.is_symlink() or not temporary.is_file():
        return
    second_name = final.is_file() and not final.is_symlink() and final.samefile(temporary)
    if second_name or temporary.name not in _KEPT:
        temporary.unlink()
