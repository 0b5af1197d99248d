"""Mining of macros: chunks that recur in train programs, and random controls that match them.

The support of a chunk is the number of programs that contain it. For train programs only: an evaluation task
must never be an argument.
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
    """Start positions of the motif in the program, overlapping ones included."""
    size, motif = len(motif), tuple(motif)
    return tuple(at for at in range(len(program) - size + 1) if tuple(program[at : at + size]) == motif)


def count_support(programs: Iterable[Sequence[str]]) -> Counter[Program]:
    """Number of programs that contain it, for each chunk of 2 or 3 primitives."""
    support: Counter[Program] = Counter()
    for program in programs:
        chunks = {
            tuple(program[at : at + size]) for size in _LENGTHS for at in range(len(program) - size + 1)
        }
        support.update(chunks)
    return support


def frequent_chunks(support: Counter[Program], index: DepthIndex) -> list[tuple[Program, int]]:
    """Chunks with their support, most frequent first; on a tie the shorter, then by order of NAMES.

    Chunks that a shorter program replaces (`NEG | NEG`) are left out.
    """
    ranked = sorted(
        support.items(),
        key=lambda item: (-item[1], len(item[0]), tuple(NAMES.index(name) for name in item[0])),
    )
    return [(chunk, count) for chunk, count in ranked if index.min_depth(chunk) == len(chunk)]


def matched_controls(
    ranked: Sequence[tuple[Program, int]], chosen: Sequence[Program], draw: SeededStream
) -> list[tuple[Program, int]]:
    """For each chosen chunk another of its length, drawn from the most frequent ones that were not chosen.

    Args:
        ranked: chunks with their support, from `frequent_chunks`.
        draw: the stream to draw from.

    Twice as many candidates as needed are considered, so that supports stay close. Raises InputRefused where
    there are fewer than needed.
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
    """Library of an arm with the chunks as M0, M1, ...

    Args:
        chunks: expansions with their support.
        sources: `source_name` of each chunk.
        provenance: where the chunks come from, in words.
        draw_seed: number of the random control; None for others.
    """
    macros = tuple(
        Macro(token=f"M{at}", expansion=chunk, length=len(chunk), source_name=source, support=support)
        for at, ((chunk, support), source) in enumerate(zip(chunks, sources, strict=True))
    )
    name = library_id(arm, [chunk for chunk, _ in chunks])
    return Library(id=name, provenance=provenance, macros=macros, draw_seed=draw_seed)
