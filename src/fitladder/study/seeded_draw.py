"""How does a study draw? Integers and orders out of a seed text, the same on every platform for ever.

SHAKE-256 of the seed text instead of a library's generator, whose streams may change between versions.
"""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["draw_integers", "draw_order"]

_Item = TypeVar("_Item")


def draw_integers(seed: str, count: int, below: int) -> npt.NDArray[np.int64]:
    """`count` integers in 0..below-1; the modulo's bias is below 2**-31 for what is drawn here."""
    data = hashlib.shake_256(seed.encode()).digest(8 * count)
    return (np.frombuffer(data, dtype="<u8") % np.uint64(below)).astype(np.int64)


def draw_order(seed: str, items: Sequence[_Item]) -> list[_Item]:
    """The items in a seeded random order; equal seeds give equal orders of as many items."""
    keys = np.frombuffer(hashlib.shake_256(seed.encode()).digest(8 * len(items)), dtype="<u8")
    return [items[index] for index in np.argsort(keys, kind="stable")]
