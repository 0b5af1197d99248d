"""Audit hook that keeps a content-blind pass from text and hidden examples, within one process.

It refuses every Python-level open of a sealed file, whatever name it goes by, every subprocess,
ctypes, and every import of a decoder. Hooks cannot be removed: it is installed once, and looks only while a
seal is active. It is process-wide, since a thread begun inside a pass would not inherit a context variable.

What the hook cannot see: files that C or C++ code opens by itself, and `_posixsubprocess.fork_exec` called
directly. `no_new_files`, where the kernel refuses any open at all, closes that while a pass computes; where
the kernel has Landlock (landlock.py), it is closed for the whole life of the process.
"""

import contextlib
import errno
import os
import resource
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fitladder.errors import ContentSealed

__all__ = ["content_blind", "no_new_files"]

SPAWNING = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "pty.spawn",
        "subprocess.Popen",
    }
)
DECODERS = frozenset({"tokenizers", "transformers", "sentencepiece", "tiktoken", "vllm"})
NATIVE = frozenset({"ctypes", "_ctypes", "cffi", "_cffi_backend"})
LIMITS = frozenset({"resource.setrlimit", "resource.prlimit"})
_Inode = tuple[int, int]


@dataclass
class _Seal:
    paths: tuple[str, ...]  # resolved; a folder seals everything below it
    inodes: frozenset[_Inode]  # what those paths were at entry, so that no alias helps
    refused: list[str] = field(default_factory=list)


class _State:
    """The process's active seals; one instance, since hooks are the process's too."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.installed = False
        self.seals: tuple[_Seal, ...] = ()
        self.frozen = False


_STATE = _State()


@contextlib.contextmanager
def content_blind(sealed_paths: Sequence[Path]) -> Iterator[None]:
    """While active, opening a sealed path by any name raises ContentSealed, as do subprocesses and decoders.

    A path may be a file or a folder, present or not. Refuses to begin while a descriptor of this process is
    open on sealed content. An open that was refused inside raises again at the end, even if it was swallowed.
    """
    paths = tuple(os.path.realpath(path) for path in sealed_paths)
    seal = _Seal(paths, frozenset(inode for path in paths for inode in _inodes(path)))
    _check_descriptors(seal)
    with _STATE.lock:
        if not _STATE.installed:
            sys.addaudithook(_hook)
            _STATE.installed = True
        _STATE.seals += (seal,)
    try:
        yield
    finally:
        with _STATE.lock:
            _STATE.seals = tuple(other for other in _STATE.seals if other is not seal)
    if seal.refused:
        raise ContentSealed(
            "a content-blind pass tried to look", got=seal.refused[0], do="its result counts for nothing"
        )


@contextlib.contextmanager
def no_new_files() -> Iterator[None]:
    """While active, the kernel gives this process no new descriptor: not to Python, not to C++.

    For passes that have their bytes in memory and do nothing else; other threads cannot open files either.
    Raises ContentSealed where something inside tried.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    frozen = _STATE.frozen
    if not frozen:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    _STATE.frozen = True
    try:
        yield
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        raise ContentSealed(
            "a computing pass tried to open a file", got=str(error)[:200], do="read bytes before, not inside"
        ) from error
    finally:
        _STATE.frozen = frozen
        if not frozen:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _inodes(path: str) -> Iterator[_Inode]:
    """The inode at this path, and of everything below it; none where nothing is there yet."""
    try:
        found = os.stat(path)
        yield found.st_dev, found.st_ino
        below = os.walk(path, onerror=_raise) if stat.S_ISDIR(found.st_mode) else ()
        for folder, _, names in below:
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # a link to nowhere
                    entry = os.stat(os.path.join(folder, name))
                    yield entry.st_dev, entry.st_ino
    except FileNotFoundError:
        return
    except OSError as error:
        raise ContentSealed("what is to be sealed cannot be listed", got=error) from error


def _raise(error: OSError) -> None:
    raise error


def _check_descriptors(seal: _Seal) -> None:
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):
            found = os.fstat(int(name))
            if (found.st_dev, found.st_ino) in seal.inodes:
                raise ContentSealed(
                    "sealed content is already open in this process",
                    got=f"descriptor {name}",
                    need="none",
                    do="begin the content-blind pass in a fresh process",
                )


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not _STATE.seals and not _STATE.frozen:
        return
    what = _refusal(event, args)
    if what is None:
        return
    for seal in _STATE.seals:
        seal.refused.append(what)
    raise ContentSealed("sealed while a content-blind pass runs", got=what)


def _refusal(event: str, args: tuple[Any, ...]) -> str | None:
    """What was tried, where it is to be refused."""
    if _STATE.frozen and event in LIMITS:
        return "lifting the limit on open files"
    if _STATE.seals:
        if event in SPAWNING:
            return f"a subprocess ({event})"
        if event.startswith("ctypes."):
            return event
        if event == "import" and str(args[0]).partition(".")[0] in DECODERS | NATIVE:
            return f"import {args[0]}"
        if event in ("open", "sqlite3.connect", "mmap.__new__"):
            return _refused_open(event, args)
    return None


def _refused_open(event: str, args: tuple[Any, ...]) -> str | None:
    target = args[0]
    if isinstance(target, int):
        return f"descriptor {target}" if target >= 0 and _is_sealed_descriptor(target) else None
    try:
        path = os.fsdecode(target)
    except TypeError:
        return f"{event} of {target!r}"
    if event == "open" and args[1] is None and not os.path.isabs(path):
        return f"os.open of the relative path {path!r}, which may lie below any descriptor"
    return path if _is_sealed_path(path) else None


def _is_sealed_descriptor(descriptor: int) -> bool:
    with contextlib.suppress(OSError):
        found = os.fstat(descriptor)
        return any((found.st_dev, found.st_ino) in seal.inodes for seal in _STATE.seals)
    return False


def _is_sealed_path(path: str) -> bool:
    resolved = os.path.realpath(path)
    inode: _Inode | None = None
    with contextlib.suppress(OSError):
        found = os.stat(path)
        inode = (found.st_dev, found.st_ino)
    return any(
        inode in seal.inodes
        or any(resolved == sealed or resolved.startswith(sealed.rstrip("/") + "/") for sealed in seal.paths)
        for seal in _STATE.seals
    )
