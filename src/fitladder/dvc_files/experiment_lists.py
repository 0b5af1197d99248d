"""The two lists of experiments in dvc.yaml, which together must be exactly those of params.yaml.

Bundles of `carried` experiments come through this repository; of `recorded` ones only registered figures are
kept. Nothing else of the graph is read.
"""

from pathlib import Path

from fitladder.errors import LineageError
from fitladder.files.strict_yaml import parse_yaml
from fitladder.records.registry import Registry

__all__ = ["CARRIED", "RECORDED", "check_registered", "load_lists", "parse_lists"]

CARRIED, RECORDED = "carried", "recorded"


def load_lists(path: Path) -> dict[str, tuple[str, ...]]:
    """The lists `carried` and `recorded` of dvc.yaml. Raises LineageError naming the file."""
    try:
        text = path.read_bytes().decode()  # as it stands: text mode would turn a lone CR into LF
    except (OSError, UnicodeDecodeError) as failure:
        raise LineageError(f"{path} cannot be read", got=failure, do="run from the checkout") from failure
    return parse_lists(text, where=str(path))


def parse_lists(text: str, *, where: str) -> dict[str, tuple[str, ...]]:
    """`load_lists` of text; a merge's conflict marker is named by its line."""
    document = parse_yaml(text, where=where, error=LineageError)
    try:
        named = {name: one[name] for one in document["vars"] for name in one}
        lists = {name: named[name] or [] for name in (CARRIED, RECORDED)}
    except (KeyError, TypeError) as failure:
        raise LineageError(
            f"{where}: vars", got=failure, need=f"the lists {CARRIED} and {RECORDED}"
        ) from failure
    for name, items in lists.items():
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise LineageError(f"{where}: vars.{name}", got=items, need="a list of experiment ids")
    return {name: tuple(items) for name, items in lists.items()}


def check_registered(registry: Registry, dvc_yaml: Path) -> None:
    """Raise LineageError unless the lists have exactly the registered experiments, each once."""
    lists = load_lists(dvc_yaml)
    listed = [item for items in lists.values() for item in items]
    for item in (*listed, *registry.experiments):
        if listed.count(item) != 1 or item not in registry.experiments:
            raise LineageError(
                f"{dvc_yaml}: {item}",
                got=f"{listed.count(item)} times in {CARRIED} and {RECORDED}"
                + ("" if item in registry.experiments else ", not registered in params.yaml"),
                need="a registered experiment, once",
                do=f"edit vars.{CARRIED} in dvc.yaml",
            )
