"""Canonical bytes, strict reading, exact rates."""

import json

import pytest
from pydantic import BaseModel, ConfigDict

from fitladder.canonical import Rate, canonical_bytes, parse_json, parse_model
from fitladder.errors import InputRefused


class _Counts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rows: int


def test_keys_are_sorted_and_text_is_not_escaped() -> None:
    assert canonical_bytes({"b": [1, 2.5], "a": "é"}) == '{"a":"é","b":[1,2.5]}'.encode()


def test_surrogates_round_trip_escaped() -> None:
    for text in ("ok \ud835 end", "cut \ufffd", "nul \x00"):
        data = canonical_bytes({"text": text})
        data.decode("utf-8")  # valid UTF-8 on disk
        assert parse_json(data, where="row")["text"] == text


@pytest.mark.parametrize(
    "text",
    [
        '{"rate":NaN}',
        '{"rate":-Infinity}',
        '{"rate":1e400}',
        '{"rate":0.01,"rate":0.9}',
        '{"count":' + "9" * 4301 + "}",
        '{"rate":0.01',
        '{"a":1} {"b":2}',
        "[" * 100_000,
    ],
    ids=["nan", "-inf", "1e400", "twice", "4301-digits", "torn", "two-documents", "deep"],
)
def test_odd_numbers_and_documents_are_refused(text: str) -> None:
    with pytest.raises(InputRefused, match=r"receipt\.json is not strict JSON"):
        parse_json(text, where="receipt.json")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"a":{"rate":NaN}}', "field a.rate: got NaN"),
        ('{"a":[1,{"b":-Infinity}]}', r"field a\[1\].b: got -Infinity"),
        ('{"a":1,"b":[0.5,1e400]}', r"field b\[1\]: got 1e400"),
        ('{"totals":{"rate":0.01,"rate":0.9}}', "field totals: got the key 'rate' twice"),
        ('{"a":1,"a":2}', r"field \(the whole document\): got the key 'a' twice"),
        ('{"rows":' + "9" * 4301 + ',"z":NaN}', "field rows: got an integer of 4301 digits"),
        ('[{"a":{"b":NaN,"c":1,"c":2}},1e999]', r"field \[0\].a: got the key 'c' twice"),
        ("NaN", r"field \(the whole document\): got NaN"),
    ],
)
def test_what_is_refused_is_named_with_its_field(text: str, field: str) -> None:
    with pytest.raises(InputRefused, match=rf"receipt\.json is not strict JSON: {field}") as refused:
        parse_json(text, where="receipt.json")
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("value", [True, 5.0, "5", None, [1]])
def test_odd_counts_name_the_field(value: object) -> None:
    with pytest.raises(InputRefused, match="receipt: field rows"):
        parse_model(_Counts, {"rows": value}, where="receipt")


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(InputRefused, match="field text"):
        parse_model(_Counts, {"rows": 1, "text": "x"}, where="receipt")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_the_writer_never_emits_non_finite_numbers(value: float) -> None:
    with pytest.raises(InputRefused):
        canonical_bytes({"rate": value})


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"rowz": 1}, "receipt: field rowz: got 1, need Extra inputs are not permitted"),
        ({}, "receipt: field rows: need Field required"),
        ({"rows": "1"}, "receipt: field rows: got '1', need a valid integer"),
    ],
)
def test_a_fault_names_the_key_as_written_and_no_whole_document(value: object, line: str) -> None:
    with pytest.raises(InputRefused) as refused:
        parse_model(_Counts, value, where="receipt")
    assert str(refused.value) == line


def test_rates_compare_by_integers() -> None:
    below, at_most = Rate.parse(0.05), Rate.parse("0.25")
    assert [below.share_is_below(count, total) for count, total in [(3, 60), (2, 48), (3, 48), (0, 0)]] == [
        False,
        True,
        False,
        False,
    ]
    assert [at_most.share_is_at_most(count, 48) for count in (12, 13)] == [True, False]


def test_rates_print_as_registered() -> None:
    assert [str(Rate.parse(text)) for text in ("0.05", "0.99", "0.5", "1")] == ["0.05", "0.99", "0.5", "1"]
    for text in ("1.01", "-0.1", "nan", "five", "1e-400", "1e999999999", "0.9900000001"):
        with pytest.raises(ValueError, match="between 0 and 1"):
            Rate.parse(text)


def test_canonical_bytes_are_what_json_reads() -> None:
    value = {"z": None, "a": [True, {"k": -1}], "n": 1e-7}
    assert json.loads(canonical_bytes(value)) == value
