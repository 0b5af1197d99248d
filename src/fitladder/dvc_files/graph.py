"""Output paths that dvc.yaml declares for every stage, read without DVC.

Understands what this repository's dvc.yaml uses: scalar vars, lists, `foreach` over a list or over the
registered experiments, `${name}`. Anything else is refused.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fitladder.errors import LineageError
from fitladder.files.strict_yaml import parse_yaml

__all__ = ["load_outputs", "parse_outputs"]

_NAME = re.compile(r"\$\{(\w+)\}")


def load_outputs(path: Path, experiment_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Output paths of every stage by name, sorted; `${experiments}` are these. Raises LineageError."""
    try:
        text = path.read_bytes().decode()  # as it stands: text mode would turn a lone CR into LF
    except (OSError, UnicodeDecodeError) as failure:
        raise LineageError(f"{path} cannot be read", got=failure) from failure
    return parse_outputs(text, experiment_ids, where=str(path))


def parse_outputs(text: str, experiment_ids: Sequence[str], *, where: str) -> dict[str, tuple[str, ...]]:
    """`load_outputs` of text."""
    document = parse_yaml(text, where=where, error=LineageError)
    try:
        known: dict[str, Any] = {name: one[name] for one in document.get("vars", ()) for name in one}
        known["experiments"] = list(experiment_ids)
        found: dict[str, tuple[str, ...]] = {}
        for name, stage in document["stages"].items():
            if "foreach" in stage:
                for item in _filled_list(stage["foreach"], known):
                    found[f"{name}@{item}"] = _outputs(stage["do"], {**known, "item": item, "key": item})
            else:
                found[name] = _outputs(stage, known)
    except (KeyError, TypeError, AttributeError) as failure:
        raise LineageError(f"{where}: stages", got=repr(failure)[:200], need="stages as in Git") from failure
    return found


def _filled_list(text: str, known: dict[str, Any]) -> list[str]:
    match = _NAME.fullmatch(text)
    if not match or not isinstance(known[match.group(1)], list):
        raise TypeError(f"foreach {text!r} names no list")
    return list(known[match.group(1)])


def _outputs(body: dict[str, Any], known: dict[str, Any]) -> tuple[str, ...]:
    items = [item for kind in ("outs", "metrics", "plots") for item in body.get(kind, ())]
    names = [next(iter(item)) if isinstance(item, dict) else item for item in items]
    return tuple(sorted(_NAME.sub(lambda match: str(known[match.group(1)]), name) for name in names))
