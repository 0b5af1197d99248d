"""Seeded draws that are the same on every platform, Python and hash seed.

Counter-mode BLAKE2b rather than `random`: the standard library promises its stream for `random()`
alone. It knows nothing of what is drawn; a label opens an independent stream of the same seed.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

__all__ = ["SeededStream"]

_T = TypeVar("_T")
_SPAN = 2**64


class SeededStream:
    """One stream, named by a seed and labels. Not thread-safe; open a stream per use."""

    def __init__(self, seed: int, *labels: str | int) -> None:
        self._name = "\0".join(str(part) for part in (seed, *labels)).encode()
        self._counter = 0

    def word(self) -> int:
        """The next 64-bit integer."""
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
        """One item, uniformly."""
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
