"""The files of a task set, read and written: the open half, and the sealed one by itself.

Bytes that are not the registered ones are refused. `load_hidden` opens the sealed file; a pass may call
it only after its choice is frozen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel

from fitladder.canonical import parse_json, parse_model, sha256_bytes
from fitladder.domains.macros.library import Libraries
from fitladder.domains.macros.tasks import Demonstrations, HiddenTasks, VisibleTasks
from fitladder.errors import InputRefused

__all__ = [
    "FILES",
    "HIDDEN",
    "TaskInputs",
    "load_hidden",
    "load_inputs",
    "parse_hidden",
    "parse_inputs",
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


def write_files(out: Path, files: Mapping[str, bytes]) -> None:
    """Write the files. One that exists with other bytes is refused before anything is written."""
    for name, data in files.items():
        if (out / name).exists() and (out / name).read_bytes() != data:
            raise InputRefused(f"{out / name} exists", got="other bytes", do="write into a new folder")
    out.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        temporary = out / f".{name}.part"
        temporary.write_bytes(data)
        temporary.replace(out / name)


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
