"""Numbers have one form each, and text that cannot be seen is written out."""

import pytest

from fitladder.report.words import byte_size, count, duration, elide, fixed, percent, sizes, visible


def test_numbers() -> None:
    assert count(963_072) == "963,072"
    assert count(0) == "0"
    assert count(None) == "not recorded"
    assert fixed(5012.451158896089) == "5,012.451"
    assert percent(37 / 48) == "77.1\u00a0%"
    assert sizes((1, 2, 4)) == "1 2 4"
    assert sizes(()) == "none"
    assert sizes(None) == "not recorded"
    assert byte_size(31_608_130) == "31,608,130 B (31.6 MB)"
    assert byte_size(999) == "999 B"
    assert [duration(x) for x in (3.21, 245, 5012.4)] == ["3.2 s", "4 min 5 s", "1 h 23 min"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ok \ud835 end", r"ok \u{d835} end"),
        ("a\x00b", r"a\u{0}b"),
        ("\u202egpj", r"\u{202e}gpj"),
        ("kept \ufffd and \U0001d54f", "kept \ufffd and \U0001d54f"),
        ("line\nnext\tcell", "line\nnext\tcell"),
        ("zero\u200bwidth", r"zero\u{200b}width"),
    ],
)
def test_text_that_nobody_sees_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    visible(text).encode()


def test_elide_keeps_both_ends() -> None:
    assert elide("abcdefghij", 10) == "abcdefghij"
    assert elide("abcdefghijk", 10) == "abcd…ghijk"
