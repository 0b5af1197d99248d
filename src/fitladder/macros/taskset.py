"""A whole task set: made from a seed as four files' bytes, and read back.

Writing and reading are the only I/O of this package. `load_hidden` opens the sealed file; only the
grading step may call it, after its choice is frozen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel

from fitladder.canonical import canonical_bytes, parse_json, parse_model, sha256_bytes
from fitladder.errors import InputRefused
from fitladder.macros.depth import DepthIndex
from fitladder.macros.draw import Draw
from fitladder.macros.generate import Excluded, draw_motifs, generate_pairs
from fitladder.macros.library import Libraries
from fitladder.macros.tasks import HiddenTasks, TaskShape, VisibleTasks
from fitladder.macros.train import Demonstrations, build_libraries, draw_demonstrations, draw_train

__all__ = [
    "FILES",
    "HIDDEN",
    "TaskInputs",
    "load_excluded",
    "load_hidden",
    "load_inputs",
    "parse_hidden",
    "parse_inputs",
    "render_task_set",
    "write_files",
]

HIDDEN: Final = "hidden.json"
FILES: Final = ("tasks.json", HIDDEN, "libraries.json", "demonstrations.json")
_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class TaskInputs:
    """The open part of a task set: everything but hidden.json."""

    visible: VisibleTasks
    libraries: Libraries
    demonstrations: Demonstrations


def render_task_set(seed: int, shape: TaskShape, excluded: Excluded | None = None) -> dict[str, bytes]:
    """File name -> canonical JSON bytes; the same bytes for the same arguments, everywhere."""
    barred = excluded or Excluded()
    index = DepthIndex.build()
    motifs = draw_motifs(Draw(seed, "motifs"), index)
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


def write_files(out: Path, files: Mapping[str, bytes]) -> None:
    """Write the files. One that exists with other bytes is refused before anything is written."""
    for name, data in files.items():
        if (out / name).exists() and (out / name).read_bytes() != data:
            raise InputRefused(f"{out / name} exists", got="other bytes", do="write into a new folder")
    out.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (out / name).write_bytes(data)


def parse_inputs(files: Mapping[str, bytes]) -> TaskInputs:
    """The open half from the bytes of its three files, keyed as in FILES. Raises InputRefused."""

    def parsed(model: type[_Model], name: str) -> _Model:
        return parse_model(model, parse_json(files[name], where=name), where=name)

    return TaskInputs(
        parsed(VisibleTasks, "tasks.json"),
        parsed(Libraries, "libraries.json"),
        parsed(Demonstrations, "demonstrations.json"),
    )


def parse_hidden(data: bytes, sha256: str) -> HiddenTasks:
    """The sealed half, if its bytes are those that tasks.json names. Raises InputRefused otherwise."""
    if sha256_bytes(data) != sha256:
        raise InputRefused("hidden.json is not the sealed file", got=sha256_bytes(data), need=sha256)
    return parse_model(HiddenTasks, parse_json(data, where="hidden.json"), where="hidden.json")


def load_inputs(folder: Path) -> TaskInputs:
    """tasks.json, libraries.json and demonstrations.json of a folder; the sealed file stays closed."""
    return parse_inputs({name: _read(folder / name) for name in FILES if name != HIDDEN})


def load_hidden(path: Path, sha256: str) -> HiddenTasks:
    """Open the sealed file: for grading after a frozen choice, and for excluding old tasks from new ones."""
    return parse_hidden(_read(path), sha256)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as failure:
        raise InputRefused(f"{path} cannot be read", got=failure.strerror or failure) from failure


def load_excluded(folders: Sequence[Path]) -> Excluded:
    """Programs and behaviours of earlier task sets, for making a new one; no pass may do this."""
    excluded = Excluded()
    for folder in folders:
        for task in load_hidden(folder / HIDDEN, load_inputs(folder).visible.hidden_sha256).tasks:
            excluded.add(task.program)
    return excluded
