"""Files of a task set: tasks.json, libraries.json and demonstrations.json, and hidden.json by itself.

hidden.json is read by `load_hidden` only, which the analysis calls after its choices are frozen. Bytes that
do not have the digest in tasks.json are refused.
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
from fitladder.files.atomic import write_output

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
    """The visible part of a task set: all files but hidden.json."""

    visible: VisibleTasks
    libraries: Libraries
    demonstrations: Demonstrations


def write_files(out: Path, files: Mapping[str, bytes]) -> None:
    """Write files by name into a folder, each whole.

    Raises InputRefused, before anything is written, where one exists with other bytes.
    """
    for name, data in files.items():
        if (out / name).exists() and (out / name).read_bytes() != data:
            raise InputRefused(f"{out / name} exists", got="other bytes", do="write into a new folder")
    for name, data in files.items():
        write_output(out / name, data, error=InputRefused)


def parse_inputs(files: Mapping[str, bytes]) -> TaskInputs:
    """The visible part from the bytes of its three files, by name. Raises InputRefused on another form."""

    def parsed(model: type[_Model], name: str) -> _Model:
        return parse_model(model, parse_json(files[name], where=name), where=name)

    return TaskInputs(
        parsed(VisibleTasks, "tasks.json"),
        parsed(Libraries, "libraries.json"),
        parsed(Demonstrations, "demonstrations.json"),
    )


def parse_hidden(data: bytes, sha256: str) -> HiddenTasks:
    """The hidden tasks from bytes of this SHA-256, which tasks.json names. Raises InputRefused on others."""
    if sha256_bytes(data) != sha256:
        raise InputRefused(
            "hidden.json is not the file that tasks.json names", got=sha256_bytes(data), need=sha256
        )
    return parse_model(HiddenTasks, parse_json(data, where="hidden.json"), where="hidden.json")


def load_inputs(folder: Path) -> TaskInputs:
    """Read the visible part of a task set from its folder. Raises InputRefused; hidden.json is not opened."""
    return parse_inputs({name: _read(folder / name) for name in FILES if name != HIDDEN})


def load_hidden(path: Path, sha256: str) -> HiddenTasks:
    """Read the hidden tasks, to grade frozen choices or to exclude old tasks from new ones.

    Args:
        sha256: `hidden_sha256` of the task set's tasks.json.

    Raises InputRefused where the file cannot be read or has another digest.
    """
    return parse_hidden(_read(path), sha256)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as failure:
        raise InputRefused(f"{path} cannot be read", got=failure.strerror or failure) from failure
