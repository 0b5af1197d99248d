"""Seeded random stream of the task generator, the same on every platform, Python version and hash seed.

Counter-mode BLAKE2b instead of `random`, whose methods but `random()` may change between versions. Published
task sets depend on these bytes; a study draws from SHAKE-256 instead (study/seeded_draw.py), whose figures
depend on those.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

__all__ = ["SeededStream"]

_T = TypeVar("_T")
_SPAN = 2**64


class SeededStream:
    """One stream of a seed; streams of other labels are independent of it.

    Not thread-safe: use a stream for each purpose.
    """

    def __init__(self, seed: int, *labels: str | int) -> None:
        self._name = "\0".join(str(part) for part in (seed, *labels)).encode()
        self._counter = 0

    def word(self) -> int:
        """The next integer of 64 bits, unsigned."""
        block = blake2b(self._name + b"\0" + str(self._counter).encode(), digest_size=8).digest()
        self._counter += 1
        return int.from_bytes(block, "big")

    def below(self, limit: int) -> int:
        """Uniform in 0..limit-1, by rejection, so without modulo bias. Raises ValueError if limit < 1."""
        if not 1 <= limit <= _SPAN:
            raise ValueError(f"got limit {limit}, need 1 to 2**64")
        ceiling = _SPAN - _SPAN % limit
        while (value := self.word()) >= ceiling:
            pass
        return value % limit

    def choice(self, items: Sequence[_T]) -> _T:
        """One item, drawn uniformly. Raises ValueError on no items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[_T]) -> list[_T]:
        """All items in a uniform order (Fisher-Yates); the argument is left as it was."""
        out = list(items)
        for last in range(len(out) - 1, 0, -1):
            other = self.below(last + 1)
            out[last], out[other] = out[other], out[last]
        return out

    def sample(self, items: Sequence[_T], count: int) -> list[_T]:
        """`count` items without replacement, in drawn order. Raises ValueError if there are too few."""
        if count > len(items):
            raise ValueError(f"got {len(items)} items, need {count}")
        return self.shuffled(items)[:count]
