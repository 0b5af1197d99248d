"""Does a marker's text really become the registered ids, alone and in its sequence?

A marker that falls into several ids is never stood for by its first one: a lone `17` is no close.
"""

from collections.abc import Callable, Sequence

from fitladder.errors import InputRefused

__all__ = ["check_marker"]


def check_marker(
    name: str,
    *,
    marker: str,
    marker_ids: Sequence[int],
    sequence: str,
    sequence_ids: Sequence[int],
    encode: Callable[[str], Sequence[int]],
) -> None:
    """Raises InputRefused unless `marker` encodes to exactly `marker_ids` (one id, or the whole registered
    run), and `sequence`, what is injected and begins with the marker, to `sequence_ids` beginning with them.
    """
    for what, text, need in ((name, marker, marker_ids), (f"{name} sequence", sequence, sequence_ids)):
        got = list(encode(text))
        if not need or got != list(need):
            raise InputRefused(
                f"{what} {text!a} is not its registered ids",
                got=got,
                need=list(need),
                do="register the whole run",
            )
    if not sequence.startswith(marker) or list(sequence_ids[: len(marker_ids)]) != list(marker_ids):
        raise InputRefused(
            f"{name} sequence {sequence!a} does not begin with its marker",
            got=list(sequence_ids),
            need=f"{list(marker_ids)} first",
        )
