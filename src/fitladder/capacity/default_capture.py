"""CUDA graphs that vLLM captures by itself where no list is given.

Follows `VllmConfig._set_cudagraph_sizes` of 0.24 to 0.32 without speculation. Only a prediction: the
resolved list of a live engine is what a receipt records.
"""

import re

from fitladder.errors import InputRefused

__all__ = ["implicit_capture_list"]

DEFAULT_CEILING = 512
ADDS_WIDTH_FROM = (0, 27)  # the default list also holds max_num_seqs from about this release on


def implicit_capture_list(
    max_num_seqs: int,
    max_num_batched_tokens: int,
    *,
    max_capture_size: int | None = None,
    vllm_version: str = "0.24.0",
) -> tuple[int, ...]:
    """The list vLLM resolves where none is given: 1, 2, 4, multiples of 8 below 256 and of 16 from there.

    `max_capture_size` is its cudagraph ceiling where that is given; else twice max_num_seqs, at most 512, and
    from 0.27 on max_num_seqs itself joins the list.
    """
    ceiling = min(2 * max_num_seqs, DEFAULT_CEILING) if max_capture_size is None else max_capture_size
    if min(max_num_seqs, max_num_batched_tokens, ceiling) < 1:
        raise InputRefused(
            "capture list", got=f"ceiling {ceiling}, width {max_num_seqs}", need="positive sizes"
        )
    release = _release(vllm_version)
    ceiling = min(ceiling, max_num_batched_tokens)
    sizes = {1, 2, 4, *range(8, 256, 8), *range(256, ceiling + 1, 16)}
    if max_num_batched_tokens <= ceiling:
        sizes.add(max_num_batched_tokens)
    if max_capture_size is None and release >= ADDS_WIDTH_FROM:
        sizes.add(max_num_seqs)
    return tuple(sorted(size for size in sizes if size <= ceiling))


def _release(version: str) -> tuple[int, int]:
    if (match := re.match(r"(\d+)\.(\d+)(?:\.|\D|$)", version)) is None:
        raise InputRefused("vLLM version", got=repr(version), need="a release such as 0.24.0")
    return int(match[1]), int(match[2])
