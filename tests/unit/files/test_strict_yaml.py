"""One YAML reader: what says a thing twice, or not plainly, is refused by line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fitladder.dvc_files.experiment_lists import load_lists
from fitladder.dvc_files.graph import load_outputs
from fitladder.dvc_files.lock_file import load_lock
from fitladder.errors import LineageError, RegistrationError
from fitladder.files.strict_yaml import parse_yaml, read_yaml
from fitladder.registry.load import load_registry, parse_registry
from fitladder.study.plan import load_study

ROOT = Path(__file__).parents[3]


def parse(text: str) -> object:
    return parse_yaml(text, where="a.yaml", error=LineageError)


def test_plain_data_comes_out() -> None:
    assert parse("a: [1, 0.5, true, null]\nb: {c: '1'}\nd: &x {e: 1}\nf: *x\n") == {
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
        ("on: a\n", "line 1 is no YAML: got 'on' is no plain number, true or false"),
        ("true: a\n", "the key True is no text"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "line 3 is no YAML: got could not determine"),
        ("a: 1\n||||||| base\n", "line 2: merge conflict marker"),
        ("a: !!python/object/apply:os.getcwd []\n", "line 1 is no YAML"),
        ("a: &x [*x]\n", "recursive"),
        ("a: 2026-13-45\n", "is no YAML: got a timestamp is no plain value"),
        ("a: 1\nb: 2026-01-02\n", "line 2 is no YAML: got a timestamp is no plain value; put text in quotes"),
        ("a: !!binary QQ==\n", "a binary is no plain value"),
        ("a: !!set {b}\n", "a set is no plain value"),
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


ENDS = ["\r", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: f"U+{ord(end):04X}")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\n# rule as ever{}b: 2{}# was: b: 1\n", 2),
        ("a: 1\r\nb: 2\r\nc: 'x{}y'\n", 3),
        ("{}a: 1", 1),
        ("a: 1\n{}", 2),
        ("a: |\n  x{}  y\n", 2),
    ],
)
def test_a_line_end_that_only_yaml_sees_is_refused_by_line(text: str, line: int, end: str) -> None:
    said = rf"^a.yaml line {line}: a line end that only YAML sees: got U\+{ord(end):04X}, need"
    with pytest.raises(LineageError, match=said):
        parse(text.replace("{}", end))


def test_windows_line_ends_and_escapes_stay_allowed() -> None:
    assert parse('a: 1\r\nb: "x\\u2028\\r"\r\n') == {"a": 1, "b": "x\u2028\r"}


@pytest.mark.parametrize("end", ENDS, ids=lambda end: f"U+{ord(end):04X}")
def test_no_registered_field_hides_behind_a_comment(tmp_path: Path, end: str) -> None:
    params = (ROOT / "params.yaml").read_text()
    field = "    kv_rule: token\n"
    hidden = params.replace(field, f"    # as ever{end}    kv_rule: token{end}    # was: kv_rule: both\n", 1)
    assert hidden != params
    line = params[: params.index(field)].count("\n") + 1
    with pytest.raises(RegistrationError, match=f"params.yaml line {line}: a line end"):
        parse_registry(hidden)
    (tmp_path / "params.yaml").write_bytes(hidden.encode())
    with pytest.raises(RegistrationError, match=f"params.yaml line {line}: a line end"):
        load_registry(tmp_path / "params.yaml")


READERS: list[tuple[str, Callable[[Path], object]]] = [
    ("dvc.yaml", load_lists),
    ("dvc.yaml", lambda path: load_outputs(path, ())),
    ("dvc.lock", load_lock),
    ("data/studies/smollm2_135m_cpu/study.yaml", load_study),
]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: f"U+{ord(end):04X}")
@pytest.mark.parametrize(("name", "load"), READERS, ids=["lists", "graph", "lock", "study"])
def test_nor_a_stage_a_digest_or_a_cell(
    tmp_path: Path, name: str, load: Callable[[Path], object], end: str
) -> None:
    path = tmp_path / Path(name).name
    whole = (ROOT / name).read_bytes()
    path.write_bytes(whole)
    load(path)
    path.write_bytes(whole + f"# nothing{end}more: {{}}{end}# here\n".encode())
    line = whole.count(b"\n") + 1
    with pytest.raises((LineageError, RegistrationError), match=f"{path.name} line {line}: a line end"):
        load(path)


ODD = ["49_152", "05215", "0xA8D", "0b1", "45:01", "1_0.5", "1:30.5", ".nan", ".inf", "-.Inf", "1.0e+400"]
ODD_WORDS = ["yes", "No", "on", "OFF", "!!int '0o7'", "!!float '1_0.5'", "!!bool 'y'"]


@pytest.mark.parametrize("odd", [*ODD, *ODD_WORDS])
def test_a_scalar_that_readers_take_for_different_values_is_refused(odd: str) -> None:
    """YAML 1.1 reads 05215 as 2701 and 1.2 as 5215: the plan would show one, DVC another."""
    with pytest.raises(LineageError, match=r"a\.yaml line 2 is no YAML: got .* is no plain number"):
        parse(f"a: 1\nb: {odd}\n")


def test_what_every_reader_takes_for_text_or_the_same_number() -> None:
    text = "[0, -3, +4, 0.25, 2.5e-1, 0o17, 1e3, 25e-2, y, ~, !!int '7', '05', 00ff]"
    assert parse(f"a: {text}") == {
        "a": [0, -3, 4, 0.25, 0.25, "0o17", "1e3", "25e-2", "y", None, 7, "05", "00ff"]
    }


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"a: \xff")
    for name in ("none", "latin"):
        with pytest.raises(LineageError, match=f"{name} cannot be read"):
            read_yaml(tmp_path / name, error=LineageError)


def test_no_other_yaml_reader_in_the_sources() -> None:
    users = {
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "tasks", "flows")
        for path in (ROOT / folder).rglob("*.py")
        if "import yaml" in path.read_text() or "from yaml" in path.read_text()
    }
    assert users == {"src/fitladder/files/strict_yaml.py"}
