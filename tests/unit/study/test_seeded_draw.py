"""Draws are pinned: the same on every platform, with every library."""

import hashlib

from fitladder.study.seeded_draw import draw_integers, draw_order


def test_pinned_values() -> None:
    assert draw_integers("prompt 2701 0", 4, 1000).tolist() == [780, 341, 605, 242]
    assert draw_order("cells 1", list("abcdef")) == list("fecdba")


def test_integers_are_the_hash_eight_bytes_at_a_time() -> None:
    data = hashlib.shake_256(b"any").digest(24)
    words = [int.from_bytes(data[at : at + 8], "little") % 97 for at in (0, 8, 16)]
    assert draw_integers("any", 3, 97).tolist() == words


def test_an_order_loses_nothing_and_depends_on_its_seed() -> None:
    items = list(range(50))
    first, second = draw_order("block 1 0", items), draw_order("block 1 1", items)
    assert sorted(first) == sorted(second) == items
    assert first != second
    assert first != items


def test_integers_fill_their_range_evenly() -> None:
    drawn = draw_integers("even", 60_000, 6)
    counts = [int((drawn == value).sum()) for value in range(6)]
    assert sum(counts) == 60_000
    assert max(counts) - min(counts) < 600  # about six standard deviations
