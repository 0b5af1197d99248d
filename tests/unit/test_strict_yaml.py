"""One YAML reader: what says a thing twice, or not plainly, is refused by line."""

from pathlib import Path

import pytest

from fitladder.errors import LineageError
from fitladder.strict_yaml import parse_yaml, read_yaml

ROOT = Path(__file__).parents[2]


def parse(text: str) -> object:
    return parse_yaml(text, where="a.yaml", error=LineageError)


def test_plain_data_comes_out() -> None:
    assert parse("a: [1, 0.5, yes, null]\nb: {c: '1'}\nd: &x {e: 1}\nf: *x\n") == {
        "a": [1, 0.5, True, None],
        "b": {"c": "1"},
        "d": {"e": 1},
        "f": {"e": 1},
    }
    assert parse("") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3 is no YAML: got the key 'a' stands twice"),
        ("a:\n  - {b: 1, b: 1}\n", "line 2 is no YAML: got the key 'b' stands twice"),
        ("1: a\n", "line 1 is no YAML: got the key 1 is no text"),
        ("on: a\n", "the key True is no text"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "line 3 is no YAML: got could not determine"),
        ("a: 1\n||||||| base\n", "line 2: merge conflict marker"),
        ("a: !!python/object/apply:os.getcwd []\n", "line 1 is no YAML"),
        ("a: &x [*x]\n", "recursive"),
        ("a: 2026-13-45\n", "is no YAML: got month"),
        ("a: " + "9" * 5000 + "\n", "is no YAML: got Exceeds"),
        ("a: 1\n---\nb: 2\n", "is no YAML"),
        ("a: \0\n", "is no YAML"),
        ("[" * 5000, "is no YAML"),
    ],
)
def test_what_is_not_plain_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(LineageError) as refusal:
        parse(text)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"a: \xff")
    for name in ("none", "latin"):
        with pytest.raises(LineageError, match=f"{name} cannot be read"):
            read_yaml(tmp_path / name, error=LineageError)


def test_no_other_reader_stands_in_the_house() -> None:
    users = {
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "tasks", "flows")
        for path in (ROOT / folder).rglob("*.py")
        if "import yaml" in path.read_text() or "from yaml" in path.read_text()
    }
    assert users == {"src/fitladder/strict_yaml.py"}
