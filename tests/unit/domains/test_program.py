import pytest

from fitladder.domains.macros.primitives import NAMES, check_values
from fitladder.domains.macros.program import execute, format_calls, parse_calls
from fitladder.errors import InputRefused

INPUT = [16, 3, 0, 9, 5]
BY_HAND = {
    "ADD1": [0, 4, 1, 10, 6],
    "MUL2": [15, 6, 0, 1, 10],
    "NEG": [1, 14, 0, 8, 12],
    "REV": [5, 9, 0, 3, 16],
    "ROTL": [3, 0, 9, 5, 16],
    "SWAP": [3, 16, 0, 9, 5],
    "SORT": [0, 3, 5, 9, 16],
    "PREFIX": [16, 2, 2, 11, 16],
    "DIFF": [16, 4, 14, 9, 13],
    "ZIGZAG": [16, 0, 5, 3, 9],
}


@pytest.mark.parametrize("name", NAMES)
def test_primitives_by_hand(name):
    values = check_values([INPUT], where="test")
    assert execute([name], values).tolist() == [BY_HAND[name]]
    assert values.tolist() == [INPUT]


def test_largest_intermediates_stay_exact():
    values = check_values([[16] * 5, [0] * 5], where="test")
    assert execute(["PREFIX"], values).tolist()[0] == [16, 15, 14, 13, 12]
    assert execute(["NEG"], values).tolist() == [[1] * 5, [0] * 5]


def test_text_form():
    assert parse_calls(" ADD1|  NEG |M0\t") == ("ADD1", "NEG", "M0")
    assert format_calls(("ADD1", "NEG")) == "ADD1 | NEG"
    for text in ("", "ADD1 |", "| ADD1", "ADD1 || NEG"):
        with pytest.raises(ValueError, match="empty call"):
            parse_calls(text)


OUTSIDE = [
    [[1, 2, 3]],
    [[1, 2, 3, 4, 17]],
    [[-1, 2, 3, 4, 5]],
    [[1.0] * 5],
    [["1"] * 5],
    [1, 2],
    [[1], [2, 3]],
    [[10**4300] * 5],
    [[True] * 5],
]


@pytest.mark.parametrize("rows", OUTSIDE, ids=range(len(OUTSIDE)))
def test_values_outside_the_domain_are_refused(rows):
    with pytest.raises(InputRefused):
        check_values(rows, where="test")


def test_unknown_primitive_is_refused():
    with pytest.raises(InputRefused, match="MUL3"):
        execute(["MUL3"], check_values([INPUT], where="test"))
