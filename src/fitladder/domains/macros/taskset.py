"""A whole task set from a seed, as the bytes of its four files.

The only consumer of everything the generator draws; nothing that runs or judges an experiment needs it.
"""

from collections.abc import Sequence
from pathlib import Path

from fitladder.canonical import canonical_bytes, sha256_bytes
from fitladder.domains.macros.depth import DepthIndex
from fitladder.domains.macros.files import FILES, HIDDEN, load_hidden, load_inputs
from fitladder.domains.macros.generate import Excluded, draw_motifs, generate_pairs
from fitladder.domains.macros.seeded_stream import SeededStream
from fitladder.domains.macros.tasks import Demonstrations, HiddenTasks, TaskShape, VisibleTasks
from fitladder.domains.macros.train import build_libraries, draw_demonstrations, draw_train

__all__ = ["load_excluded", "render_task_set"]


def render_task_set(seed: int, shape: TaskShape, excluded: Excluded | None = None) -> dict[str, bytes]:
    """File name -> canonical JSON bytes; the same bytes for the same arguments, everywhere."""
    barred = excluded or Excluded()
    index = DepthIndex.build()
    motifs = draw_motifs(SeededStream(seed, "motifs"), index)
    train = draw_train(seed, motifs, index, barred)
    taken = Excluded(set(barred.programs), set(barred.signatures))
    for program in train:
        taken.add(program)
    pairs = list(generate_pairs(seed, shape, motifs, index, taken))
    # Controls first, then reuse tasks, in both halves.
    hidden = HiddenTasks(
        schema_version=1, seed=seed, tasks=tuple(pair.hidden[at] for at in (1, 0) for pair in pairs)
    )
    sealed = canonical_bytes(hidden)
    visible = VisibleTasks(
        schema_version=1,
        seed=seed,
        shape=shape,
        hidden_sha256=sha256_bytes(sealed),
        tasks=tuple(pair.visible[at] for at in (1, 0) for pair in pairs),
    )
    libraries = build_libraries(seed, train, motifs, index, shape.macros)
    shown = Demonstrations(schema_version=1, demonstrations=draw_demonstrations(seed, train, motifs, shape))
    data = (canonical_bytes(visible), sealed, canonical_bytes(libraries.plain()), canonical_bytes(shown))
    return dict(zip(FILES, data, strict=True))


def load_excluded(folders: Sequence[Path]) -> Excluded:
    """Programs and behaviours of earlier task sets, for making a new one; no pass may do this."""
    excluded = Excluded()
    for folder in folders:
        for task in load_hidden(folder / HIDDEN, load_inputs(folder).visible.hidden_sha256).tasks:
            excluded.add(task.program)
    return excluded
