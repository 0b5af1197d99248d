"""Choice of one sample for each task: the earliest valid one with the most visible examples right.

Never sees a hidden example. All choices are frozen under one digest before the hidden tasks may be loaded.
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
    """One parsed sample of a task and how many visible examples it gets right (0 for a rejection)."""

    sample_index: int
    result: Candidate | Rejection
    visible_right: int


@dataclass(frozen=True)
class Choice:
    """The chosen sample of a record and its program in primitives; None where no sample is valid."""

    record_id: str
    sample_index: int | None
    expansion: tuple[str, ...] | None
    visible_right: int


def count_right(program: Sequence[str], examples: tuple[Example, ...]) -> int:
    """Number of examples whose whole output the program gives. Raises InputRefused on an unknown call."""
    inputs, outputs = columns(examples)
    return int((execute(program, inputs) == outputs).all(axis=1).sum())


def score_samples(
    results: Sequence[Candidate | Rejection], visible: tuple[Example, ...]
) -> tuple[ScoredSample, ...]:
    """Score the parsed samples of a task, given in sample order, on its visible examples."""
    return tuple(
        ScoredSample(at, one, count_right(one.expansion, visible) if isinstance(one, Candidate) else 0)
        for at, one in enumerate(results)
    )


def choose(record_id: str, scored: Sequence[ScoredSample]) -> Choice:
    """The earliest of the valid samples with the most visible examples right."""
    best: ScoredSample | None = None
    for one in scored:
        if isinstance(one.result, Candidate) and (best is None or one.visible_right > best.visible_right):
            best = one
    if best is None or not isinstance(best.result, Candidate):
        return Choice(record_id, None, None, 0)
    return Choice(record_id, best.sample_index, best.result.expansion, best.visible_right)


def choices_sha256(choices: Sequence[Choice]) -> str:
    """SHA-256 over the canonical JSON of all choices, in order."""
    return canonical_sha256([asdict(choice) for choice in choices])
