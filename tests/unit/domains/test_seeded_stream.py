import pytest

from fitladder.domains.macros.seeded_stream import SeededStream


def test_stream_is_pinned():
    # These words may never change: every registered task set depends on them.
    draw = SeededStream(2701, "pin", 0)
    assert [draw.word() for _ in range(3)] == PINNED
    assert SeededStream(2701, "pin", 1).word() != PINNED[0]


PINNED = [9818201639745643495, 8672755758729351337, 9051225796942795226]


def test_below_is_in_range_and_reaches_every_value():
    draw = SeededStream(1, "below")
    assert {draw.below(17) for _ in range(500)} == set(range(17))
    assert {draw.below(1) for _ in range(5)} == {0}
    for limit in (0, -1, 2**64 + 1):
        with pytest.raises(ValueError, match="limit"):
            draw.below(limit)


def test_shuffled_and_sample_leave_the_argument_alone():
    items = list(range(20))
    drawn = SeededStream(3, "shuffle").shuffled(items)
    assert items == list(range(20))
    assert sorted(drawn) == items
    assert drawn != items
    assert len(set(SeededStream(3, "sample").sample(items, 7))) == 7
    with pytest.raises(ValueError, match="need 21"):
        SeededStream(3).sample(items, 21)
