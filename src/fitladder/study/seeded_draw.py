"""Seeded integers and orders of a study, the same on every platform and NumPy version.

SHAKE-256 of a seed text instead of NumPy's generators, whose streams may change. Prompts, orders and
bootstrap intervals of published studies depend on these bytes; tasks are drawn from BLAKE2b
(domains/macros/seeded_stream.py).
"""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["draw_integers", "draw_order"]

_Item = TypeVar("_Item")


def draw_integers(seed: str, count: int, below: int) -> npt.NDArray[np.int64]:
    """Draw `count` integers of 0..below-1, int64; the modulo's bias is at most below / 2**64."""
    data = hashlib.shake_256(seed.encode()).digest(8 * count)
    return (np.frombuffer(data, dtype="<u8") % np.uint64(below)).astype(np.int64)


def draw_order(seed: str, items: Sequence[_Item]) -> list[_Item]:
    """The items in a seeded random order, which depends on the seed and the number of items only."""
    keys = np.frombuffer(hashlib.shake_256(seed.encode()).digest(8 * len(items)), dtype="<u8")
    return [items[index] for index in np.argsort(keys, kind="stable")]
