import pytest

from fitladder.errors import InputRefused
from fitladder.prompts.record_names import check_file_name, check_ids

ALIASES = [
    (1, "1"),
    (1, True),
    (True, "1"),
    (1, 1.0),
    ("a/b", "a_b"),
    ("a\\b", "a b"),
    ("caf\u00e9", "cafe\u0301"),
    ("s-1", "s-1"),
    ("s-1", "S-1"),
    ("a::b", "a:b"),
]


@pytest.mark.parametrize(("first", "second"), ALIASES, ids=range(len(ALIASES)))
def test_duplicate_ids_are_refused_naming_both(first, second):
    with pytest.raises(InputRefused) as caught:
        check_ids(["other", first, second], what="records")
    assert ascii(first) in str(caught.value)
    assert ascii(second) in str(caught.value)


def test_distinct_ids_pass():
    ids = [
        "reuse-000::base",
        "reuse-001::base",
        "no-reuse-000::base",
        "caf\u00e9",
        "cafe",
        "\u4e00",
        "\u4e8c",
    ]
    assert check_ids(ids, what="records") == tuple(ids)


@pytest.mark.parametrize("value", [1, True, None, 1.5, ["a"], b"a"])
def test_ids_are_strings(value):
    with pytest.raises(InputRefused, match="need a string"):
        check_ids([value], what="records")


@pytest.mark.parametrize(
    "name",
    [
        "a\ud835b",
        "a\x00b",
        "a\nb",
        "a/b",
        "..",
        ".",
        "",
        " a",
        "a ",
        "a.",
        "x" * 201,
        "\u00e9" * 101,
        "a\x9fb",
    ],
)
def test_bad_file_names_are_refused(name):
    with pytest.raises(InputRefused, match="no file name") as caught:
        check_file_name(name, what="records")
    str(caught.value).encode()  # the message itself must be writable


def test_replacement_character_is_an_ordinary_one():
    check_file_name("cut\ufffd", what="records")


def test_an_id_is_a_file_name():
    with pytest.raises(InputRefused, match=r"records: .* is no file name"):
        check_ids(["fine", "a/b"], what="records")
    assert check_ids(["x" * 200], what="records") == ("x" * 200,)
