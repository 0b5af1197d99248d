"""Train programs of a task set, the libraries mined from them, and demonstrations.

Evaluation tasks are drawn later and exclude what is drawn here.
"""

from collections.abc import Sequence
from typing import Final

from fitladder.domains.macros.depth import DepthIndex
from fitladder.domains.macros.generate import Excluded, Motifs, draw_examples
from fitladder.domains.macros.library import Libraries
from fitladder.domains.macros.mining import (
    count_support,
    frequent_chunks,
    make_library,
    matched_controls,
    motif_occurrences,
)
from fitladder.domains.macros.primitives import NAMES
from fitladder.domains.macros.program import Program
from fitladder.domains.macros.seeded_stream import SeededStream
from fitladder.domains.macros.tasks import Demonstration, TaskShape
from fitladder.errors import InputRefused

__all__ = ["build_libraries", "draw_demonstrations", "draw_train"]

TRAIN_PROGRAMS: Final = 400
RANDOM_CONTROLS: Final = 5
_ATTEMPTS: Final = 100 * TRAIN_PROGRAMS


def draw_train(seed: int, motifs: Motifs, index: DepthIndex, excluded: Excluded) -> list[Program]:
    """Draw 400 programs of 3 to 5 primitives, about half of them with a motif, all of full minimum depth.

    No program comes twice, though some may behave alike; none is in `excluded`, which is left as it is.
    Raises InputRefused where the seed gives too few.
    """
    draw = SeededStream(seed, "train")
    chunks = sorted(motifs.values())
    programs: dict[Program, None] = {}
    for _ in range(_ATTEMPTS):
        size = 3 + draw.below(3)
        program = tuple(draw.choice(NAMES) for _ in range(size))
        if draw.below(2):
            at = draw.below(size - 1)
            program = (*program[:at], *draw.choice(chunks), *program[at + 2 :])
        if index.min_depth(program) in (None, size) and not excluded.holds(program):
            programs[program] = None
        if len(programs) == TRAIN_PROGRAMS:
            return list(programs)
    raise InputRefused("too few train programs", got=len(programs), need=TRAIN_PROGRAMS, do="exclude less")


def build_libraries(
    seed: int, programs: Sequence[Program], motifs: Motifs, index: DepthIndex, macros: int
) -> Libraries:
    """Libraries of all arms: base, designed_ceiling, mined, and five random controls.

    base has no macros. designed_ceiling has the motifs and, up to `macros`, other frequent chunks as decoys.
    mined has the most frequent chunks; each control has chunks matched to them in length and frequency.

    Args:
        macros: number of macros in each library but base.
    """
    support = count_support(programs)
    ranked = frequent_chunks(support, index)
    draw = SeededStream(seed, "decoys")
    known = [(chunk, support[chunk]) for chunk in motifs.values()]
    pool = [item for item in ranked if len(item[0]) == 2 and item[0] not in motifs.values()][: 2 * macros]
    decoys = draw.sample(pool, macros - len(known))
    mined = ranked[:macros]
    made = [
        make_library("base", [], [], "primitives only"),
        make_library(
            "designed_ceiling",
            [*known, *decoys],
            [*motifs, *(f"DECOY_{at:02d}" for at in range(len(decoys)))],
            "the generator's own motifs and decoys: a ceiling, not a discovery",
        ),
        make_library(
            "mined", mined, ["SUPPORT"] * len(mined), "most frequent train chunks, degenerate ones left out"
        ),
    ]
    for number in range(RANDOM_CONTROLS):
        drawn = matched_controls(ranked, [chunk for chunk, _ in mined], SeededStream(seed, "control", number))
        name = f"random_{number}"
        text = "train chunks that were not mined, matched in length and frequency"
        made.append(make_library(name, drawn, ["CONTROL"] * len(drawn), text, draw_seed=number))
    return Libraries(schema_version=1, libraries={library.arm: library for library in made})


def draw_demonstrations(
    seed: int, programs: Sequence[Program], motifs: Motifs, shape: TaskShape
) -> tuple[Demonstration, ...]:
    """Draw solved train programs without any motif. Raises InputRefused where there are too few."""
    plain = [
        (number, program)
        for number, program in enumerate(programs)
        if not any(motif_occurrences(program, motif) for motif in motifs.values())
    ]
    if len(plain) < shape.demonstrations:
        raise InputRefused("too few demonstrations", got=len(plain), need=shape.demonstrations)
    draw = SeededStream(seed, "demonstrations")
    return tuple(
        Demonstration(
            id=f"train-{number:04d}",
            split="train",
            verified=True,
            program=program,
            io=draw_examples(draw, program, shape.demonstration_examples, set()),
        )
        for number, program in draw.sample(plain, shape.demonstrations)
    )
