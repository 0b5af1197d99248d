"""Stages in dvc.lock with the MD5 of every input and output.

Pure but for one read. Whether files, cache and receipts agree with them is checked in dvc_api/check.py.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fitladder.errors import LineageError
from fitladder.files.strict_yaml import parse_yaml

__all__ = ["LockedPath", "LockedStage", "load_lock", "parse_lock"]

_RESOLVE = "resolve the merge: keep one side whole, then run `dvc repro`"


@dataclass(frozen=True)
class LockedPath:
    """An input or output as recorded. `md5` ends in `.dir` for a folder, whose files `files` counts."""

    path: str
    md5: str
    bytes: int
    files: int | None

    @property
    def is_folder(self) -> bool:
        return self.md5.endswith(".dir")


@dataclass(frozen=True)
class LockedStage:
    """One stage as it last ended: `params` holds the registered values of params.yaml that it depended on."""

    name: str
    cmd: str
    deps: dict[str, LockedPath]
    outs: dict[str, LockedPath]
    params: dict[str, Any]


def load_lock(path: Path) -> dict[str, LockedStage]:
    """The stages of dvc.lock by name; none where there is no such file yet. Raises LineageError."""
    if not path.exists():
        return {}
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as failure:
        raise LineageError(f"{path} cannot be read", got=failure) from failure
    return parse_lock(text, where=str(path))


def parse_lock(text: str, *, where: str) -> dict[str, LockedStage]:
    """`load_lock` of text. A conflict marker or a broken record is named by line or by field."""
    document = parse_yaml(text, where=where, error=LineageError, do=_RESOLVE)
    if document is None:
        return {}
    if not isinstance(document, dict) or document.get("schema") != "2.0":
        raise LineageError(f"{where}: schema", got=repr(document)[:60], need="2.0")
    stages = document.get("stages") or {}
    if not isinstance(stages, dict):
        raise LineageError(f"{where}: stages", got=type(stages).__name__, need="a mapping by name")
    return {name: _stage(name, body, f"{where}: {name}") for name, body in stages.items()}


def _stage(name: str, body: Any, where: str) -> LockedStage:
    if not isinstance(body, dict):
        raise LineageError(where, got=type(body).__name__, need="a mapping")
    params = body.get("params") or {}
    return LockedStage(
        name=name,
        cmd=str(body.get("cmd", "")),
        deps=_paths(body.get("deps") or [], f"{where}: deps"),
        outs=_paths(body.get("outs") or [], f"{where}: outs"),
        params=dict(params.get("params.yaml") or {}),
    )


def _paths(items: Any, where: str) -> dict[str, LockedPath]:
    found: dict[str, LockedPath] = {}
    for item in items:
        path = item.get("path") if isinstance(item, dict) else None
        md5 = item.get("md5") if isinstance(item, dict) else None
        if not isinstance(path, str) or not isinstance(md5, str):
            raise LineageError(where, got=repr(item)[:120], need="a path with its md5", do=_RESOLVE)
        if path in found:
            raise LineageError(f"{where}: {path} stands twice", do=_RESOLVE)
        found[path] = LockedPath(path, md5, int(item.get("size") or 0), item.get("nfiles"))
    return found
