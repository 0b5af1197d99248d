"""Check of a registered close marker against the tokenizer.

A marker that is several ids must be registered with all of them: its first id alone also occurs in other
text.
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
    """Refuse a marker or an injected sequence whose text does not encode to the registered ids.

    Args:
        name: what the marker is called in messages.
        marker, marker_ids: the text that ends thinking, and all ids that it becomes.
        sequence, sequence_ids: what is injected where a sample did not close; begins with the marker.
        encode: text to ids, without special ones added.

    Raises InputRefused naming the ids that the tokenizer gives.
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
