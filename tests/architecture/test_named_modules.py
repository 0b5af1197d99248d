"""Every module that a docstring, a comment or a message names exists where it is named."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [path for folder in ("src", "tasks", "flows") for path in sorted((ROOT / folder).rglob("*.py"))]
FILE = re.compile(r"[\w./-]*\w\.py\b")
DOTTED = re.compile(r"\b(?:fitladder|tasks|flows)(?:\.\w+){2,}")  # of two parts also a file or a key


def _is_file(name: str, beside: Path) -> bool:
    """A path from the checkout, from the package, or beside the module that names it."""
    return any((base / name).is_file() for base in (ROOT, ROOT / "src" / "fitladder", beside))


def _is_dotted(name: str) -> bool:
    """A module or package, or one name inside it."""
    parts = name.split(".")
    base = ROOT / "src" if parts[0] == "fitladder" else ROOT
    whole, outer = base.joinpath(*parts), base.joinpath(*parts[:-1])
    return whole.is_dir() or any(place.with_suffix(".py").is_file() for place in (whole, outer))


def wrong_names(text: str, beside: Path) -> list[str]:
    """`line: name` of each module named in `text` that does not exist."""
    found = [(match, _is_file(match.group(), beside)) for match in FILE.finditer(text)]
    found += [(match, _is_dotted(match.group())) for match in DOTTED.finditer(text)]
    return [
        f"{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
        for match, exists in found
        if not exists
    ]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_named_module_exists(path: Path) -> None:
    assert not wrong_names(path.read_text(), path.parent)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("# reconcile.py asks\n", ["1: reconcile.py"]),
        ("\n`bundles/gone.py`", ["2: bundles/gone.py"]),
        ("fitladder.store.gone.name", ["1: fitladder.store.gone.name"]),
        ("\n\n(see fitladder.gone.name)", ["3: fitladder.gone.name"]),
        (
            "catalog_chain.py, records/engine_facts.py, fitladder.store.catalog_chain.load_chain",
            [],
        ),
    ],
)
def test_a_name_of_no_module_is_noticed(text: str, wrong: list[str]) -> None:
    assert wrong_names(text, ROOT / "src" / "fitladder" / "store") == wrong
