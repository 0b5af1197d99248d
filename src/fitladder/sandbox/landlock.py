"""Landlock: the kernel keeps this process from every file but the named ones. Linux 5.13 and later.

Once begun it is for the life of the process and of all it starts, C and C++ code too, for root as
well. Other systems have none: `landlock_abi` is 0 there. It knows nothing of what lies in the files.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from fitladder.errors import ContentSealed

__all__ = ["landlock_abi", "restrict_files"]

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same number on every architecture that has them
_ABI_FLAG, _PATH_BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_FOLDER, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_FOLDER, _MAKE_FILE, _TRUNCATE, _IOCTL = 1 << 7, 1 << 8, 1 << 14, 1 << 15
_ON_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_READ = _READ_FILE | _READ_DIR
_WRITE = _READ | _WRITE_FILE | _TRUNCATE | _REMOVE_FILE | _REMOVE_FOLDER | _MAKE_FILE | _MAKE_FOLDER
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # how many the kernel of this ABI knows; 16 from ABI 5 on


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def landlock_abi() -> int:
    """The kernel's Landlock version; 0 where it has none or it is switched off. Raises ContentSealed."""
    if sys.platform != "linux":
        return 0
    found, error = _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_ABI_FLAG))
    if found < 0 and error not in (errno.ENOSYS, errno.EOPNOTSUPP):
        raise ContentSealed("the kernel does not say whether it can seal", got=os.strerror(error))
    return max(found, 0)


def restrict_files(readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """From now on this process opens nothing outside these paths, starts no program and no connection.

    Each path must exist; `writable` folders may be read, too. Call it while the process has one thread and
    before it reads what is to be judged. Raises ContentSealed where the kernel refuses any part.
    """
    abi = landlock_abi()
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise ContentSealed("a seal comes too late", got=f"{threads} threads", need="one")
    handled = (1 << _FILE_RIGHTS.get(abi, 16)) - 1
    wanted = _Ruleset(handled, 0b11 if abi >= 4 else 0, 0b11 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _done("a ruleset", _CREATE, ctypes.byref(wanted), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for rights, paths in ((_READ, readable), (_WRITE, writable)):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            raise ContentSealed("the kernel refuses the seal", got=os.strerror(ctypes.get_errno()))
        _done("the seal", _RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)  # type: ignore[attr-defined,unused-ignore]  # Linux
    except OSError as failure:
        raise ContentSealed(f"{path} cannot be left open", got=failure.strerror) from failure
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _ON_A_FILE
        rule = _Beneath(rights, descriptor)
        kind = ctypes.c_int(_PATH_BENEATH)
        _done(str(path), _ADD, ctypes.c_int(ruleset), kind, ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(descriptor)


def _done(what: str, number: int, *arguments: object) -> int:
    result, error = _call(number, *arguments)
    if result < 0:
        raise ContentSealed("the kernel refuses the seal", got=f"{what}: {os.strerror(error)}")
    return result


def _call(number: int, *arguments: object) -> tuple[int, int]:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    result = int(libc.syscall(ctypes.c_long(number), *arguments))
    return result, ctypes.get_errno()
