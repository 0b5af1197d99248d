"""CUDA-graph coverage: decode widths that a list of capture sizes leaves without a graph.

A batch is padded up to the next captured size; one wider than the largest runs eager. Pure: it sees two
lists and a width, and does not know whether they were asked for or resolved.
"""

from collections.abc import Sequence
from itertools import pairwise

from fitladder.errors import FitladderError, GateRefused

__all__ = [
    "check_capture_list",
    "covering_capture_list",
    "dense_capture_list",
    "normalise_capture_list",
    "padded_width",
    "render_widths",
    "uncovered_widths",
]


def _sizes(capture_sizes: Sequence[int] | None, error: type[FitladderError]) -> tuple[int, ...]:
    if capture_sizes is None or isinstance(capture_sizes, str) or not len(capture_sizes):
        raise error(
            "no capture sizes", got=repr(capture_sizes), need="at least one size: every width runs eager"
        )
    if any(type(size) is not int or size < 1 for size in capture_sizes):
        raise error("capture sizes", got=list(capture_sizes), need="positive integers")
    return tuple(capture_sizes)


def _width(max_num_seqs: int, tokens_per_sequence: int, error: type[FitladderError]) -> int:
    for name, value in (("max_num_seqs", max_num_seqs), ("tokens a sequence and step", tokens_per_sequence)):
        if type(value) is not int or value < 1:
            raise error(name, got=repr(value), need="a positive integer")
    return max_num_seqs * tokens_per_sequence


def check_capture_list(
    capture_sizes: Sequence[int] | None,
    max_num_seqs: int,
    *,
    tokens_per_sequence: int = 1,
    error: type[FitladderError] = GateRefused,
) -> tuple[int, ...]:
    """A list that covers every width exactly: positive, strictly increasing, ending at the widest batch.

    `tokens_per_sequence` is 1, or 1 + draft tokens under speculation: the widest batch is max_num_seqs
    times that. Returns the list. Raises `error` naming the uncovered widths where there are some.
    """
    widest = _width(max_num_seqs, tokens_per_sequence, error)
    sizes = _sizes(capture_sizes, error)
    if any(left >= right for left, right in pairwise(sizes)):
        raise error("capture sizes", got=list(sizes), need="a strictly increasing list")
    if sizes[-1] != widest:
        missing = uncovered_widths(sizes, max_num_seqs, tokens_per_sequence=tokens_per_sequence)
        raise error(
            f"capture sizes leave widths {render_widths(missing)} without a graph"
            if missing
            else "capture sizes reach past the widest batch",
            got=list(sizes),
            need=f"a list ending at {widest}",
        )
    return sizes


def uncovered_widths(
    capture_sizes: Sequence[int], max_num_seqs: int, *, tokens_per_sequence: int = 1
) -> tuple[int, ...]:
    """Widths in 1..max_num_seqs that no captured graph holds, in order; all of them for an empty list."""
    _width(max_num_seqs, tokens_per_sequence, GateRefused)
    largest = max(_sizes(capture_sizes, GateRefused)) if len(capture_sizes) else 0
    return tuple(range(largest // tokens_per_sequence + 1, max_num_seqs + 1))


def covering_capture_list(max_num_seqs: int) -> tuple[int, ...]:
    """The registered form of an exact list: powers of two below max_num_seqs, then max_num_seqs itself."""
    _width(max_num_seqs, 1, GateRefused)
    return (*(1 << k for k in range((max_num_seqs - 1).bit_length())), max_num_seqs)


def dense_capture_list(max_num_seqs: int) -> tuple[int, ...]:
    """For widths that keep changing, as under spaced admission: each up to 32, then a 16th apart at most.

    A covering list of powers of two pads a 24-wide batch to 32 and pays for all 32 on every step.
    """
    _width(max_num_seqs, 1, GateRefused)
    sizes = list(range(1, min(max_num_seqs, 32) + 1))
    while sizes[-1] < max_num_seqs:
        sizes.append(min(max_num_seqs, sizes[-1] + (1 << (sizes[-1].bit_length() - 5))))
    return tuple(sizes)


def normalise_capture_list(capture_sizes: Sequence[int] | None) -> tuple[int, ...]:
    """Sorted without repeats, as vLLM does to an explicit list. Raises GateRefused on none at all."""
    return tuple(sorted(set(_sizes(capture_sizes, GateRefused))))


def padded_width(width: int, capture_sizes: Sequence[int]) -> int:
    """The graph a batch of `width` replays in, or `width` itself where it runs eager."""
    return min((size for size in capture_sizes if size >= width), default=width)


def render_widths(widths: Sequence[int]) -> str:
    """Increasing widths as ranges: `17-19`, `3, 9-12`; `none` for no widths."""
    runs: list[list[int]] = []
    for width in widths:
        if runs and runs[-1][1] == width - 1:
            runs[-1][1] = width
        else:
            runs.append([width, width])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs) or "none"
