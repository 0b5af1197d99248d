import pytest

from fitladder.canonical import parse_model
from fitladder.domains.macros.library import Libraries, Library, expand, library_id
from fitladder.domains.macros.mining import make_library
from fitladder.errors import InputRefused

LIBRARY = make_library(
    "test",
    [(("ADD1", "REV"), 3), (("REV", "NEG"), 2), (("ADD1", "REV", "NEG"), 1)],
    ["a", "b", "c"],
    "by hand",
)


def plain(**changes):
    macro = {"token": "M0", "expansion": ["ADD1", "REV"], "length": 2, "source_name": "x", "support": 1}
    macros = [macro | changes.pop("macro", {})]
    name = library_id("t", [one["expansion"] for one in macros])
    return {"id": name, "provenance": "p", "macros": macros} | changes


def test_expand():
    assert expand(("M0", "SORT", "M2"), LIBRARY) == ("ADD1", "REV", "SORT", "ADD1", "REV", "NEG")
    with pytest.raises(KeyError):
        expand(("M7",), LIBRARY)


@pytest.mark.parametrize(
    "macro",
    [
        {"expansion": ["M0", "REV"]},  # cyclic
        {"expansion": ["M1", "REV"]},  # nested
        {"expansion": ["ADD1"] * 4, "length": 4},
        {"expansion": ["ADD1"], "length": 1},
        {"expansion": ["ADD1"] * 100_000, "length": 100_000},
        {"length": 3},
        {"token": "M8"},
        {"token": "M0\n"},
        {"token": "ADD1"},
        {"token": "M1"},
        {"support": -1},
        {"support": True},
        {"expansion": ["ADD1", "\ud835"]},
        {"extra": 1},
    ],
)
def test_hostile_macros_are_refused(macro):
    with pytest.raises(InputRefused):
        parse_model(Library, plain(macro=macro), where="library")


def test_library_identity():
    library = parse_model(Library, plain(), where="library")
    assert library.arm == "t"
    assert library.plain() == plain()
    with pytest.raises(InputRefused, match="names other macros"):
        parse_model(Library, plain(id="t-0000000000000000"), where="library")
    with pytest.raises(InputRefused, match="under the name"):
        parse_model(Libraries, {"schema_version": 1, "libraries": {"other": plain()}}, where="libraries")
