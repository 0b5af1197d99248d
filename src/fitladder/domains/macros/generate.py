"""Generator of paired tasks from a seed: a task in which motifs recur, and a control without them.

A reuse task chains two motifs and one more primitive and has a minimum depth of five. Its control permutes
the same primitives so that no motif occurs, with the same depth. No behaviour appears twice, nor any excluded
one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Final

import numpy as np

from fitladder.domains.macros.depth import DepthIndex, program_signature
from fitladder.domains.macros.mining import motif_occurrences
from fitladder.domains.macros.primitives import LENGTH, MODULUS, NAMES
from fitladder.domains.macros.program import Program, execute
from fitladder.domains.macros.seeded_stream import SeededStream
from fitladder.domains.macros.tasks import Example, HiddenTask, Split, TaskShape, VisibleTask, columns
from fitladder.errors import InputRefused

__all__ = ["Excluded", "Motifs", "Pair", "draw_examples", "draw_motifs", "generate_pairs"]

DEPTH: Final = 5
_ATTEMPTS: Final = 2_000
Motifs = dict[str, Program]


@dataclass
class Excluded:
    """Programs and behaviours that may not be drawn. Grows as tasks are accepted."""

    programs: set[Program] = field(default_factory=set)
    signatures: set[str] = field(default_factory=set)

    def add(self, program: Sequence[str]) -> None:
        """Exclude a program and all that behave like it on the probes."""
        self.programs.add(tuple(program))
        self.signatures.add(program_signature(program))

    def holds(self, program: Sequence[str]) -> bool:
        """True where the program or its behaviour is excluded."""
        return tuple(program) in self.programs or program_signature(program) in self.signatures


@dataclass(frozen=True)
class Pair:
    """A reuse task and its control, in that order, each as a visible and a hidden task."""

    visible: tuple[VisibleTask, VisibleTask]
    hidden: tuple[HiddenTask, HiddenTask]


def draw_motifs(draw: SeededStream, index: DepthIndex) -> Motifs:
    """Three motifs of two primitives, by name: six different primitives, none that behaves as its reverse.

    Raises InputRefused where the seed gives none in 2,000 attempts.
    """
    for _ in range(_ATTEMPTS):
        names = draw.sample(NAMES, 6)
        chunks = [(names[at], names[at + 1]) for at in (0, 2, 4)]
        if all(
            index.min_depth(chunk) == 2 and program_signature(chunk) != program_signature(chunk[::-1])
            for chunk in chunks
        ):
            return {"_".join(chunk): chunk for chunk in chunks}
    raise InputRefused("no motifs found", got=f"{_ATTEMPTS} draws", do="use another seed")


def draw_examples(
    draw: SeededStream, program: Sequence[str], count: int, used: set[tuple[int, ...]]
) -> tuple[Example, ...]:
    """Draw `count` examples of a program on inputs that are not in `used`, and add their inputs to it."""
    inputs: list[tuple[int, ...]] = []
    while len(inputs) < count:
        values = tuple(draw.below(MODULUS) for _ in range(LENGTH))
        if values not in used:
            used.add(values)
            inputs.append(values)
    outputs = execute(program, np.array(inputs, dtype=np.int8)).tolist()
    return tuple(Example(input=one, output=tuple(two)) for one, two in zip(inputs, outputs, strict=True))


def _draw_visible(
    draw: SeededStream, program: Program, count: int, used: set[tuple[int, ...]]
) -> tuple[Example, ...]:
    """Draw examples that no program of up to four primitives reproduces."""
    for _ in range(_ATTEMPTS):
        shown = draw_examples(draw, program, count, used)
        if DepthIndex.build(columns(shown)[0], DEPTH - 1).min_depth(program) is None:
            return shown
    raise InputRefused("no telling visible examples found", got=f"{_ATTEMPTS} draws", do="show more examples")


def _motifs_in(program: Program, motifs: Motifs) -> tuple[str, ...]:
    at = {name: motif_occurrences(program, motif) for name, motif in motifs.items()}
    return tuple(sorted((name for name in at if at[name]), key=lambda name: at[name][0]))


def _draw_programs(
    draw: SeededStream, motifs: Motifs, index: DepthIndex, excluded: Excluded
) -> tuple[Program, Program]:
    """Draw a reuse program and its control. Raises InputRefused where the seed gives none."""

    def accepted(program: Program, motif_count: int) -> bool:
        return (
            len(_motifs_in(program, motifs)) == motif_count
            and index.min_depth(program) is None
            and not excluded.holds(program)
        )

    for _ in range(_ATTEMPTS):
        parts: list[Program] = [
            *(motifs[name] for name in draw.sample(sorted(motifs), 2)),
            (draw.choice(NAMES),),
        ]
        reuse = tuple(name for part in draw.shuffled(parts) for name in part)
        if not accepted(reuse, 2):
            continue
        others = sorted(set(permutations(reuse)) - {reuse})
        for control in draw.shuffled(others):
            if accepted(control, 0) and program_signature(control) != program_signature(reuse):
                return reuse, control
    raise InputRefused(
        "no pair of tasks found", got=f"{_ATTEMPTS} draws", do="ask for fewer records or use another seed"
    )


def generate_pairs(
    seed: int, shape: TaskShape, motifs: Motifs, index: DepthIndex, excluded: Excluded
) -> Iterable[Pair]:
    """Make shape.records / 2 pairs; `excluded` grows by their programs.

    Each pair has a stream of its own, so that a larger set begins with the smaller one. The visible examples
    alone rule out every program of up to four primitives. Raises InputRefused where the seed gives too few.
    """
    for number in range(shape.records // 2):
        draw = SeededStream(seed, "pair", number)
        programs = _draw_programs(draw, motifs, index, excluded)
        names = (f"reuse-{number:03d}", f"no-reuse-{number:03d}")
        splits: tuple[Split, Split] = ("reuse", "no_reuse")
        visible, hidden = [], []
        for at, program in enumerate(programs):
            excluded.add(program)
            used: set[tuple[int, ...]] = set()
            shown = _draw_visible(draw, program, shape.visible, used)
            visible.append(
                VisibleTask(id=names[at], split=splits[at], paired_task_id=names[1 - at], visible=shown)
            )
            hidden.append(
                HiddenTask(
                    id=names[at],
                    program=program,
                    program_signature=program_signature(program),
                    min_depth=DEPTH,
                    motif_names=_motifs_in(program, motifs),
                    hidden=draw_examples(draw, program, shape.hidden, used),
                    probe=draw_examples(draw, program, shape.probe, used),
                )
            )
        yield Pair((visible[0], visible[1]), (hidden[0], hidden[1]))
