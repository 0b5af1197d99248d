"""A whole task set from a seed, as the bytes of its four files; used by `fitladder tasks` only."""

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
    """Canonical JSON of the four files by name, the same bytes for the same arguments on every platform.

    Args:
        seed: of all streams.
        shape: counts and wording.
        excluded: programs and behaviours of earlier sets; left as it is.

    Raises InputRefused where the seed gives too few programs.
    """
    earlier = excluded or Excluded()
    index = DepthIndex.build()
    motifs = draw_motifs(SeededStream(seed, "motifs"), index)
    train = draw_train(seed, motifs, index, earlier)
    taken = Excluded(set(earlier.programs), set(earlier.signatures))
    for program in train:
        taken.add(program)
    pairs = list(generate_pairs(seed, shape, motifs, index, taken))
    # Controls first, then reuse tasks, in both halves.
    hidden = HiddenTasks(
        schema_version=1, seed=seed, tasks=tuple(pair.hidden[at] for at in (1, 0) for pair in pairs)
    )
    hidden_data = canonical_bytes(hidden)
    visible = VisibleTasks(
        schema_version=1,
        seed=seed,
        shape=shape,
        hidden_sha256=sha256_bytes(hidden_data),
        tasks=tuple(pair.visible[at] for at in (1, 0) for pair in pairs),
    )
    libraries = build_libraries(seed, train, motifs, index, shape.macros)
    shown = Demonstrations(schema_version=1, demonstrations=draw_demonstrations(seed, train, motifs, shape))
    data = (canonical_bytes(visible), hidden_data, canonical_bytes(libraries.plain()), canonical_bytes(shown))
    return dict(zip(FILES, data, strict=True))


def load_excluded(folders: Sequence[Path]) -> Excluded:
    """Programs and behaviours of earlier task sets; reads their hidden files, so only for making new sets."""
    excluded = Excluded()
    for folder in folders:
        for task in load_hidden(folder / HIDDEN, load_inputs(folder).visible.hidden_sha256).tasks:
            excluded.add(task.program)
    return excluded
