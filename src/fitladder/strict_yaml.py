"""What does a YAML file say, if it says it once and plainly? One reader for every YAML file of the house.

Refused by line: a key that stands twice, a key that is no text, a merge's conflict marker. Nothing but plain
data comes out; anchors and aliases stay allowed, merge keys do not.
"""

from pathlib import Path
from typing import Any

import yaml

from fitladder.errors import FitladderError

__all__ = ["parse_yaml", "read_yaml"]

_MARKERS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")


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


_Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def parse_yaml(text: str, *, where: str, error: type[FitladderError], do: str | None = None) -> Any:
    """Plain data of one YAML document, None of an empty one. Raises `error` with `where` and the line."""
    for number, line in enumerate(text.splitlines(), start=1):
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
