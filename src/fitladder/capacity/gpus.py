"""Memory of a GPU, as CUDA reports it to the process.

Less than the name says, and up to 0.3 % different between drivers; a live engine's own figure always wins.
"""

from fitladder.errors import UsageError

__all__ = ["GPU_MEMORY_BYTES", "find_gpu"]

_MIB = 1 << 20

GPU_MEMORY_BYTES: dict[str, int] = {
    "h200": 143_170 * _MIB,
    "h100": 81_090 * _MIB,
    "a100-80": 81_050 * _MIB,
    "a100-40": 40_440 * _MIB,
    "rtx6000ada": 48_600 * _MIB,
    "l40s": 45_480 * _MIB,
    "rtx4090": 24_210 * _MIB,
    "rtx3090": 24_250 * _MIB,
    "l4": 22_560 * _MIB,
}


def find_gpu(name: str) -> int:
    """Bytes of a GPU. Raises UsageError naming the known ones."""
    if (total := GPU_MEMORY_BYTES.get(name.lower())) is None:
        raise UsageError("no such GPU", got=repr(name), need=f"one of {', '.join(GPU_MEMORY_BYTES)}")
    return total
