"""The ten primitives on lists of five integers modulo 17, vectorised.

Every function maps an int8 array of shape (..., 5) with values 0..16 to a new array of the same shape. int8
holds all intermediates: the largest is a prefix sum of 80.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fitladder.errors import InputRefused

__all__ = ["LENGTH", "MODULUS", "NAMES", "PRIMITIVES", "Values", "check_values"]

Values = NDArray[np.int8]
MODULUS: Final = 17
LENGTH: Final = 5

_REDUCED: Final = np.arange(128, dtype=np.int8) % np.int8(MODULUS)
_ZIGZAG: Final = (0, 2, 4, 1, 3)


def _reduce(values: Values) -> Values:
    # A table is several times faster than remainder on int8; all callers stay within 0..127.
    return _REDUCED.take(values)


def _swap(values: Values) -> Values:
    return values[..., (1, 0, 2, 3, 4)]


def _prefix(values: Values) -> Values:
    return _reduce(np.cumsum(values, axis=-1, dtype=np.int8))


def _diff(values: Values) -> Values:
    out = values.copy()
    out[..., 1:] += np.int8(MODULUS) - values[..., :-1]
    return _reduce(out)


PRIMITIVES: Final = MappingProxyType[str, Callable[[Values], Values]](
    {
        "ADD1": lambda values: _reduce(values + np.int8(1)),
        "MUL2": lambda values: _reduce(values * np.int8(2)),
        "NEG": lambda values: _reduce(np.int8(MODULUS) - values),
        "REV": lambda values: values[..., ::-1].copy(),
        "ROTL": lambda values: np.roll(values, -1, axis=-1),
        "SWAP": _swap,
        "SORT": lambda values: np.sort(values, axis=-1),
        "PREFIX": _prefix,
        "DIFF": _diff,
        "ZIGZAG": lambda values: values[..., _ZIGZAG],
    }
)
"""Name to function; DIFF keeps the first value and subtracts each from its successor."""

NAMES: Final = tuple(PRIMITIVES)
"""The registered order; opcode i is NAMES[i]."""


def check_values(rows: object, *, where: str) -> Values:
    """Rows of five integers 0..16 as an int8 array (rows, 5). Raises InputRefused naming `where`."""
    try:
        values = np.asarray(rows)
    except (ValueError, OverflowError) as failure:
        raise InputRefused(f"{where} is no table of lists", got=str(failure)[:80]) from failure
    if values.dtype.kind not in "iu" or values.ndim != 2 or values.shape[1] != LENGTH:
        raise InputRefused(f"{where}", got=f"{values.dtype} of shape {values.shape}", need="integers (n, 5)")
    if values.size and not (values.min() >= 0 and values.max() < MODULUS):
        raise InputRefused(f"{where}", got=f"{values.min()} to {values.max()}", need="values 0 to 16")
    return values.astype(np.int8)
