"""The one reader of every YAML file here: plain data that says each thing once.

Refused by line: a key that stands twice, a key that is no text, a merge's conflict marker, a line end that
only YAML sees, and a number, a truth value or a date that YAML 1.1 and 1.2 read differently (DVC reads
params.yaml too). Nothing but plain data comes out; anchors and aliases stay allowed, merge keys do not.
"""

import math
import re
from pathlib import Path
from typing import Any, Final

import yaml

from fitladder.errors import FitladderError

__all__ = ["parse_yaml", "read_yaml"]

_MARKERS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
# YAML 1.1 ends a line, and so a comment, at each of these; Git and editors show one line.
_HIDDEN_ENDS: Final = re.compile("\r(?!\n)|[\x85\u2028\u2029]")


class _Strict(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml where it is: 6 times faster
    """Plain YAML whose mappings name each key once, as text."""


def _mapping(loader: _Strict, node: yaml.MappingNode) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise _odd(f"the key {key!r} is no text", key_node)
        if key in seen:
            raise _odd(f"the key {key!r} stands twice", key_node)
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


def _odd(problem: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


_TAG: Final = "tag:yaml.org,2002:"
_WHOLE: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_REAL: Final = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+][0-9]+)?")


def _scalar(loader: _Strict, node: yaml.ScalarNode) -> int | float | bool:
    """A number in plain decimal, or true and false."""
    text = str(loader.construct_scalar(node))
    kind = node.tag.removeprefix(_TAG)
    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "int" and _WHOLE.fullmatch(text):
        return int(text)
    if kind == "float" and _REAL.fullmatch(text) and math.isfinite(real := float(text)):
        return real
    raise _odd(f"{text[:40]!r} is no plain number, true or false", node)


def _no_plain(loader: _Strict, node: yaml.Node) -> Any:
    raise _odd(f"a {node.tag.removeprefix(_TAG)} is no plain value; put text in quotes", node)


_Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
for _kind in ("bool", "int", "float"):
    _Strict.add_constructor(_TAG + _kind, _scalar)
for _kind in ("timestamp", "binary", "set", "omap", "pairs"):
    _Strict.add_constructor(_TAG + _kind, _no_plain)


def parse_yaml(text: str, *, where: str, error: type[FitladderError], do: str | None = None) -> Any:
    """Plain data of one YAML document, None of an empty one. Raises `error` with `where` and the line."""
    if hidden := _HIDDEN_ENDS.search(text):
        raise error(
            f"{where} line {text.count(chr(10), 0, hidden.start()) + 1}: a line end that only YAML sees",
            got=f"U+{ord(hidden.group()):04X}",
            need="lines that end in LF or CR LF",
            do="remove it, or write it as an escape in double quotes",
        )
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith(_MARKERS):
            raise error(
                f"{where} line {number}: merge conflict marker",
                got=line[:40],
                do=do or "resolve the merge first",
            )
    try:
        return yaml.load(text, Loader=_Strict)
    except yaml.YAMLError as failure:
        mark = getattr(failure, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        got = getattr(failure, "problem", None) or failure
        raise error(f"{where}{line} is no YAML", got=got) from failure
    except (ValueError, RecursionError) as failure:  # an impossible date, an endless number, endless nesting
        raise error(f"{where} is no YAML", got=str(failure)[:120]) from failure


def read_yaml(path: Path, *, error: type[FitladderError], do: str | None = None) -> Any:
    """`parse_yaml` of a file; one that cannot be read is an `error` naming the path."""
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as failure:
        raise error(f"{path} cannot be read", got=failure, do=do) from failure
    return parse_yaml(text, where=str(path), error=error)
