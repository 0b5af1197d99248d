"""Where an experiment may write its bundles: its root by registry or environment, checked in every respect.

It decides on a path and the registry; it creates nothing.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from fitladder.errors import RootRefused
from fitladder.files.overlap import overlaps, read_mounts
from fitladder.records.experiment import Experiment

__all__ = ["check_root", "resolve_root"]

_CACHE_NAMES = (".git", ".dvc", ".hg", ".svn")


def resolve_root(experiment: Experiment, environ: Mapping[str, str], *, others: Iterable[Experiment]) -> Path:
    """The artifact root: the environment override where set, else the registered one. It need not exist.

    `others`: every registered experiment; this one is skipped. Raises RootRefused naming path and reason.
    """
    text = _named_root(experiment, environ)
    forbidden = [("a forbidden root", path) for path in experiment.artifacts.forbidden_roots]
    for other in others:
        if other.experiment_id != experiment.experiment_id:
            override = environ.get(other.artifacts.environment_override)
            forbidden += [
                (f"the root of {other.experiment_id}", path)
                for path in (other.artifacts.root, override)
                if path
            ]
    return check_root(text, forbidden)


def _named_root(experiment: Experiment, environ: Mapping[str, str]) -> str:
    variable = experiment.artifacts.environment_override
    if variable in environ:
        if not environ[variable].strip():
            raise RootRefused(f"{variable} is empty", need="an absolute path", do="set or unset it")
        return environ[variable]
    if experiment.artifacts.root is None:
        raise RootRefused(
            f"{experiment.experiment_id} has no artifact root here",
            need=f"{variable} set to an absolute path",
            do=f"export {variable}=/path/of/its/own",
        )
    return experiment.artifacts.root


def check_root(text: str, forbidden: Iterable[tuple[str, str]]) -> Path:
    """A path that may be a root, apart from every (name, path) in `forbidden`. Raises RootRefused."""
    path = _plain_path(text)
    _check_components(path)
    mounts = read_mounts()
    for name, other in forbidden:
        if overlaps(str(path), other, mounts):
            raise RootRefused(f"artifact root {path} overlaps {name}", got=other, need="a folder of its own")
    _check_no_cache(path)
    return path


def _plain_path(text: str) -> Path:
    trimmed = text.rstrip("/")
    parts = trimmed.split("/")[1:]
    if not text.startswith("/") or not trimmed:
        raise RootRefused("artifact root", got=ascii(text), need="an absolute path below /")
    if any(part in ("", ".", "..") for part in parts):
        raise RootRefused("artifact root", got=ascii(text), need="a path without //, . or ..")
    if not text.isprintable() or any(part != part.strip() for part in parts):
        raise RootRefused("artifact root", got=ascii(text), need="printable names without outer blanks")
    return Path(trimmed)


def _check_components(path: Path) -> None:
    for part in (*reversed(path.parents), path):
        try:
            mode = part.lstat().st_mode
        except FileNotFoundError:
            return
        except OSError as failure:
            raise RootRefused(f"artifact root {path}: {part}", got=failure.strerror) from failure
        if not stat.S_ISDIR(mode):
            got = f"a symbolic link to {os.readlink(part)}" if stat.S_ISLNK(mode) else "no folder"
            raise RootRefused(f"artifact root {path}: {part}", got=got, need="real folders all the way")


def _check_no_cache(path: Path) -> None:
    inside = next((part for part in path.parts if part.casefold() in _CACHE_NAMES), None)
    if inside:
        raise RootRefused(f"artifact root {path} lies inside a {inside}", need="a folder of its own")
    for above in (path, *path.parents):
        if all((above / name).exists() for name in ("HEAD", "objects", "refs")):
            raise RootRefused(f"artifact root {path} lies inside the Git store {above}")
        if (above / "files" / "md5").is_dir():
            raise RootRefused(f"artifact root {path} lies inside the DVC cache {above}")
        if (above / ".dvc").is_dir() and path.is_relative_to(above / "data" / "bundles"):
            raise RootRefused(
                f"artifact root {path} is where DVC keeps its copy", need="a folder outside data/bundles"
            )
