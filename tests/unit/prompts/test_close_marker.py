import pytest

from fitladder.errors import InputRefused
from fitladder.prompts.close_marker import check_marker

CLOSE, RUN = "</think>", "</think>\n"


def check(encoder, marker_ids, sequence_ids):
    check_marker(
        "close marker",
        marker=CLOSE,
        marker_ids=marker_ids,
        sequence=RUN,
        sequence_ids=sequence_ids,
        encode=encoder.get,
    )


@pytest.mark.parametrize("registered", [[17], [900], [17, 1002], []])
def test_a_marker_of_several_ids_is_never_its_first_one(registered):
    # (A) the text falls apart; (B) it does so although the vocabulary has 900 for it.
    encoder = {CLOSE: [17, 1002, 33], RUN: [17, 1002, 33, 10]}
    with pytest.raises(InputRefused, match=r"\[17, 1002, 33\]") as caught:
        check(encoder, registered, [17, 1002, 33, 10])
    assert CLOSE in str(caught.value)


def test_context_breaks_the_marker():
    # (C) alone one id, with a newline behind it another run.
    encoder = {CLOSE: [900], RUN: [17, 1002, 34]}
    with pytest.raises(InputRefused, match="does not begin with its marker"):
        check(encoder, [900], [17, 1002, 34])
    with pytest.raises(InputRefused, match="close marker sequence"):
        check(encoder, [900], [900, 10])


def test_the_whole_registered_run_is_accepted():
    check({CLOSE: [17, 1002, 33], RUN: [17, 1002, 33, 10]}, [17, 1002, 33], [17, 1002, 33, 10])
    check({CLOSE: [900], RUN: [900, 10]}, [900], (900, 10))


def test_sequence_must_hold_the_marker_text():
    with pytest.raises(InputRefused, match="does not begin"):
        check_marker(
            "m",
            marker="x",
            marker_ids=[1],
            sequence="yx",
            sequence_ids=[1, 2],
            encode={"x": [1], "yx": [1, 2]}.get,
        )
