"""The selected samples are exactly those expected: none missing, none more, none twice."""

import pytest

from fitladder.errors import BundleError
from fitladder.semantics.selected_samples import AnswerRow, SelectedSamples, check_rows

ROWS = tuple(AnswerRow(name, index, (1,)) for name in ("a", "b") for index in range(2))


def selected(rows):
    return SelectedSamples("e", 1, 2, "0" * 64, tuple(rows))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (ROWS[:-1], "missing.*'b' sample 1"),
        ((*ROWS, ROWS[0]), "twice.*'a' sample 0"),
        ((*ROWS, AnswerRow("a", 0, (2,))), "twice"),
        ((*ROWS, AnswerRow("a", 2, ())), "not expected.*'a' sample 2"),
        ((*ROWS, AnswerRow("c", 0, ())), "not expected.*'c' sample 0"),
        ((*ROWS[:-1], AnswerRow("b", -1, ())), "missing"),
        ((), "missing"),
    ],
)
def test_duplicate_missing_and_unexpected_samples_are_refused(rows, words):
    with pytest.raises(BundleError, match=words):
        check_rows(selected(rows), ["a", "b"])


def test_rows_come_back_in_sample_order():
    assert check_rows(selected(ROWS[::-1]), ["a", "b"]) == {"a": ROWS[:2], "b": ROWS[2:]}
    with pytest.raises(BundleError, match="empty matrix"):
        check_rows(selected(()), [])
