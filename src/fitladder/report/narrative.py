"""Authored words of a page, with every number filled in from the records or checked against them.

A narrative holds placeholders, `{{ rung(49152).loops }}`, and checked literals,
`{{ rung(49152).loops = 37 }}`. A bare number, in digits or spelled, has no audit to agree with and is
refused, and so is a checked one that is not what the audit says, or a `slower than` that was faster. No code
runs: a path is looked up in plain data.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from fitladder.errors import InputRefused
from fitladder.files.strict_yaml import read_yaml
from fitladder.report.bare_figures import bare_figure, is_figure, spelled, worded_share
from fitladder.report.narrative_figures import NotRun
from fitladder.report.view import Narrative
from fitladder.report.words import NOT_RUN, count, fixed, percent, sizes

__all__ = ["fill", "load_narrative", "parse_narrative"]

_PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_SEGMENT = re.compile(r"\s*([a-z][a-z_0-9]*)(?:\(([^()]*)\))?\s*")
_SPACES = re.compile(r"[ \t\r\n]+")  # not the no-break space that holds a figure and its unit together
_DIRECTIONS = {"faster": 1, "higher": 1, "more": 1, "slower": -1, "lower": -1, "fewer": -1}
_LISTS = ("idea", "question", "found", "matters", "may_not_conclude")
_WORDS = ("title", "program_primary", "program_secondary", "near_duplicate", "near_duplicate_difference")
NOT_YET = "\0"  # cannot come from YAML: its readers refuse it
_KINDS = ("experiment", "rehearsal")


def load_narrative(path: Path, facts: Mapping[str, Any]) -> Narrative:
    """`parse_narrative` of the file at `path`, with these `facts`. Raises InputRefused naming the path."""
    if not path.exists():
        raise InputRefused(f"{path} is absent", need="the authored fields of this experiment")
    document = read_yaml(path, error=InputRefused)
    return parse_narrative(document, facts, where=str(path))


def parse_narrative(document: Any, facts: Mapping[str, Any], *, where: str) -> Narrative:
    """Authored fields with every number filled in.

    Args:
        document: the parsed YAML; exactly the fields of `Narrative`, and `names` where it has any.
        facts: figures by path, as narrative_figures.py makes them.
        where: names the file in messages.

    Raises InputRefused naming the field.
    """
    expected = {item.name for item in fields(Narrative)}
    if not isinstance(document, dict) or document.keys() - {"names"} != expected:
        got = sorted(map(str, document)) if isinstance(document, dict) else type(document).__name__
        raise InputRefused(f"{where}: the authored fields", got=got, need=sorted(expected))
    if document["kind"] not in _KINDS:
        raise InputRefused(f"{where}: kind", got=repr(document["kind"]), need=" or ".join(_KINDS))
    names = document.get("names", [])
    if not isinstance(names, list) or any(
        not isinstance(name, str) or not name[:1].isalpha() or (name.isalpha() and is_figure(name))
        for name in names
    ):
        raise InputRefused(
            f"{where}: names", got=names, need="a list of names that begin with a letter and are no number"
        )
    done: dict[str, Any] = {"kind": document["kind"]}
    for name in _WORDS:
        done[name] = _text(document[name], facts, names, f"{where}: {name}")
    for name in _LISTS:
        value = document[name]
        if not isinstance(value, list) or not value:
            raise InputRefused(f"{where}: {name}", got=type(value).__name__, need="a list of paragraphs")
        done[name] = tuple(
            _text(item, facts, names, f"{where}: {name}[{index}]") for index, item in enumerate(value)
        )
    return Narrative(**done)


def _text(value: Any, facts: Mapping[str, Any], names: list[str], where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputRefused(where, got=repr(value), need="words")
    return fill(value, facts, names=names, where=where)


def fill(text: str, facts: Mapping[str, Any], *, names: list[str], where: str) -> str:
    """The text with its placeholders replaced.

    Args:
        text: one authored paragraph.
        facts: figures by path, as narrative_figures.py makes them.
        names: words that may hold digits, such as `H200`.
        where: names file and field in messages.

    Raises InputRefused on a bare number, an unknown figure, and a literal that is not its figure.
    """
    bare = _PLACEHOLDER.sub(" ", text)
    for name in sorted(names, key=len, reverse=True):
        bare = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", bare)
    if "{{" in bare or "}}" in bare:
        raise InputRefused(f"{where}: a placeholder is not closed", got=" ".join(text.split())[:80])
    if figure := bare_figure(bare):
        raise InputRefused(
            f"{where}: a bare number that no audit vouches for",
            got=repr(figure),
            need="a placeholder such as {{ rung(49152).loops }}, `| words` if it is to be spelled, or, for a "
            "name, the word under `names`",
        )
    if share := worded_share(text):
        raise InputRefused(
            f"{where}: a share in words that no audit vouches for",
            got=repr(share),
            need="{{ a count }} of {{ a total }}",
        )
    filled = _PLACEHOLDER.sub(lambda match: _one(match.group(1), facts, where), text)
    return _not_run(text) if NOT_YET in filled else _SPACES.sub(" ", filled).strip()


def _not_run(text: str) -> str:
    """A paragraph about a phase that has no audit says that, and nothing half filled in."""
    rungs = sorted({int(budget) for budget in re.findall(r"\brung\((\d{1,18})\)", text)})
    return f"{' and '.join(f'{budget:,}' for budget in rungs)} thinking tokens: {NOT_RUN} yet."


def _one(expression: str, facts: Mapping[str, Any], where: str) -> str:
    """`path`, `path | words`, `path | slower than path`, each with or without `= literal`."""
    left, equals, literal = expression.partition("=")
    path, bar, filtered = left.partition("|")
    value = _look_up(path, facts, where)
    if bar:
        word, _, other = filtered.strip().partition(" than ")
        if word == "words" and not other:
            value = _spelled(value, where)
        elif word in _DIRECTIONS and other:
            value = _compared(value, _look_up(other, facts, where), word, where)
        else:
            known = ", ".join(f"{name} than PATH" for name in _DIRECTIONS)
            raise InputRefused(
                f"{where}: {expression.strip()}", got=repr(filtered.strip()), need=f"words, {known}"
            )
    printed = _print(value)
    if equals and printed == NOT_YET:
        raise InputRefused(
            f"{where}: an authored number without an audit ({left.strip()})",
            got=literal.strip(),
            need="the plain placeholder until the phase has run",
        )
    if equals and " ".join(literal.split()) != printed.replace("\u00a0", " "):
        raise InputRefused(
            f"{where}: the authored number disagrees with its audit ({left.strip()})",
            got=literal.strip(),
            need=printed,
            do="correct the narrative; the audit stands",
        )
    return printed


def _look_up(path: str, facts: Mapping[str, Any], where: str) -> Any:
    value: Any = facts
    for part in path.split("."):
        match = _SEGMENT.fullmatch(part)
        if match is None:
            raise InputRefused(f"{where}: no such path", got=repr(path.strip()), need="name(argument).name")
        for key in (match.group(1), match.group(2)):
            if isinstance(value, NotRun):
                return value
            if key is None:
                continue
            if not isinstance(value, Mapping) or key.strip() not in value:
                known = ", ".join(sorted(value)) if isinstance(value, Mapping) else "nothing below it"
                raise InputRefused(f"{where}: no such figure ({path.strip()})", got=key.strip(), need=known)
            value = value[key.strip()]
    if isinstance(value, Mapping):
        raise InputRefused(f"{where}: {path.strip()} is no figure", need=f"one of {', '.join(sorted(value))}")
    return value


def _spelled(value: Any, where: str) -> Any:
    word = spelled(value) if isinstance(value, int) and not isinstance(value, bool) else None
    if word is None and not isinstance(value, NotRun):
        raise InputRefused(f"{where}: words", got=repr(value), need="a count from 0 to 12")
    return value if word is None else word


def _compared(value: Any, other: Any, word: str, where: str) -> Any:
    """`19.56 % slower`: how far `value` is from `other`, as a share of it; a false direction is refused."""
    if isinstance(value, NotRun) or isinstance(other, NotRun):
        return NotRun()
    if not isinstance(value, int | float) or not isinstance(other, int | float) or not other:
        raise InputRefused(f"{where}: {word} than", got=f"{value!r} and {other!r}", need="two numbers")
    if (value - other) * _DIRECTIONS[word] <= 0:
        raise InputRefused(
            f"{where}: {word} than",
            got=f"{_print(value)} against {_print(other)}",
            need=f"one that is {word}",
        )
    return f"{percent(Fraction(abs(value - other)) / Fraction(other), 2)} {word}"


def _print(value: Any) -> str:
    if isinstance(value, NotRun):
        return NOT_YET
    if isinstance(value, Fraction):
        return percent(value)
    if isinstance(value, float):
        return fixed(value)
    if isinstance(value, tuple):
        return sizes(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return count(value)
    return str(value)
