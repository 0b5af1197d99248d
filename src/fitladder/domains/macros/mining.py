"""Which chunks recur in a set of programs, which of them make macros, and matched random controls.

Support counts programs, not places: one program holding a chunk twice supports it once. It sees
construction programs only and must never be handed evaluation tasks.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from fitladder.domains.macros.depth import DepthIndex
from fitladder.domains.macros.library import Library, Macro, library_id
from fitladder.domains.macros.primitives import NAMES
from fitladder.domains.macros.program import Program
from fitladder.domains.macros.seeded_stream import SeededStream
from fitladder.errors import InputRefused

__all__ = ["count_support", "frequent_chunks", "make_library", "matched_controls", "motif_occurrences"]

_LENGTHS = (2, 3)


def motif_occurrences(program: Sequence[str], motif: Sequence[str]) -> tuple[int, ...]:
    """Start positions of the motif as a contiguous chunk; overlaps count."""
    size, motif = len(motif), tuple(motif)
    return tuple(at for at in range(len(program) - size + 1) if tuple(program[at : at + size]) == motif)


def count_support(programs: Iterable[Sequence[str]]) -> Counter[Program]:
    """Chunk of 2 or 3 primitives -> number of programs that hold it."""
    support: Counter[Program] = Counter()
    for program in programs:
        chunks = {
            tuple(program[at : at + size]) for size in _LENGTHS for at in range(len(program) - size + 1)
        }
        support.update(chunks)
    return support


def frequent_chunks(support: Counter[Program], index: DepthIndex) -> list[tuple[Program, int]]:
    """Non-degenerate chunks with their support, most frequent first.

    Degenerate: a shorter program does the same (`NEG | NEG`). Ties: shorter, then registered name order.
    """
    ranked = sorted(
        support.items(),
        key=lambda item: (-item[1], len(item[0]), tuple(NAMES.index(name) for name in item[0])),
    )
    return [(chunk, count) for chunk, count in ranked if index.min_depth(chunk) == len(chunk)]


def matched_controls(
    ranked: Sequence[tuple[Program, int]], chosen: Sequence[Program], draw: SeededStream
) -> list[tuple[Program, int]]:
    """For each chosen chunk another of the same length, drawn from the most frequent that were not chosen.

    The pool is twice the need of a length, so supports stay adjacent. Raises InputRefused if it is short.
    """
    taken: dict[int, list[tuple[Program, int]]] = {}
    for length in sorted({len(chunk) for chunk in chosen}):
        need = sum(len(chunk) == length for chunk in chosen)
        pool = [item for item in ranked if len(item[0]) == length and item[0] not in chosen][: 2 * need]
        if len(pool) < need:
            raise InputRefused(f"controls of length {length}", got=f"{len(pool)} chunks", need=need)
        taken[length] = draw.sample(pool, need)
    return [taken[len(chunk)].pop(0) for chunk in chosen]


def make_library(
    arm: str,
    chunks: Sequence[tuple[Program, int]],
    sources: Sequence[str],
    provenance: str,
    *,
    draw_seed: int | None = None,
) -> Library:
    """Chunks with their supports become M0, M1, ... of a library."""
    macros = tuple(
        Macro(token=f"M{at}", expansion=chunk, length=len(chunk), source_name=source, support=support)
        for at, ((chunk, support), source) in enumerate(zip(chunks, sources, strict=True))
    )
    name = library_id(arm, [chunk for chunk, _ in chunks])
    return Library(id=name, provenance=provenance, macros=macros, draw_seed=draw_seed)
