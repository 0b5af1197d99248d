"""Which sample stands for a task? The earliest valid one with the most visible examples right.

It never sees a hidden example. The choices of a whole matrix are frozen under one digest before
anything sealed may be opened.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from fitladder.canonical import canonical_sha256
from fitladder.domains.macros.program import execute
from fitladder.domains.macros.tasks import Example, columns
from fitladder.semantics.parse import Candidate, Rejection

__all__ = ["Choice", "ScoredSample", "choices_sha256", "choose", "count_right", "score_samples"]


@dataclass(frozen=True)
class ScoredSample:
    """One sample of a task after parsing, with its visible score (0 for a rejection)."""

    sample_index: int
    result: Candidate | Rejection
    visible_right: int


@dataclass(frozen=True)
class Choice:
    """The sample that stands for a record, or None where no sample is valid."""

    record_id: str
    sample_index: int | None
    expansion: tuple[str, ...] | None
    visible_right: int


def count_right(program: Sequence[str], examples: tuple[Example, ...]) -> int:
    """How many examples the program reproduces in full."""
    inputs, outputs = columns(examples)
    return int((execute(program, inputs) == outputs).all(axis=1).sum())


def score_samples(
    results: Sequence[Candidate | Rejection], visible: tuple[Example, ...]
) -> tuple[ScoredSample, ...]:
    """Score a task's samples, given in sample order."""
    return tuple(
        ScoredSample(at, one, count_right(one.expansion, visible) if isinstance(one, Candidate) else 0)
        for at, one in enumerate(results)
    )


def choose(record_id: str, judged: Sequence[ScoredSample]) -> Choice:
    """The earliest among the best."""
    best: ScoredSample | None = None
    for one in judged:
        if isinstance(one.result, Candidate) and (best is None or one.visible_right > best.visible_right):
            best = one
    if best is None or not isinstance(best.result, Candidate):
        return Choice(record_id, None, None, 0)
    return Choice(record_id, best.sample_index, best.result.expansion, best.visible_right)


def choices_sha256(choices: Sequence[Choice]) -> str:
    """One digest over all choices, in order."""
    return canonical_sha256([asdict(choice) for choice in choices])
