"""Generation time of both sampling stages, and the speed that follows from it.

Model load is in neither stage. Receipts, engine metadata and child replies record whole microseconds by
stage; every sum, conversion to seconds and speed of this package is made here.
"""

from typing import Protocol

__all__ = ["StageTimes", "generation_s", "generation_us", "s_to_us", "tokens_per_s", "us_to_s"]

_US_PER_S = 1_000_000


class StageTimes(Protocol):
    """A record with the generation time of each stage in microseconds."""

    @property
    def stage1_generation_us(self) -> int:
        """Stage 1: thinking."""

    @property
    def stage2_generation_us(self) -> int:
        """Stage 2: answers behind an injected or restarted close; 0 where it did not run."""


def generation_us(times: StageTimes) -> int:
    """Both stages together, in microseconds."""
    return times.stage1_generation_us + times.stage2_generation_us


def generation_s(times: StageTimes) -> float:
    """Both stages together, in seconds."""
    return us_to_s(generation_us(times))


def us_to_s(us: int) -> float:
    """Microseconds of a record in seconds."""
    return us / _US_PER_S


def s_to_us(measured_s: float) -> int:
    """A measured duration as records keep it, rounded to the nearest microsecond."""
    return round(measured_s * _US_PER_S)


def tokens_per_s(sampled_tokens: int, spent_s: float) -> float | None:
    """Sampled tokens over generation seconds, load excluded; None where no time was measured."""
    return sampled_tokens / spent_s if spent_s > 0 else None
