"""Text of a follow-up in params.yaml and dvc.yaml: the predecessor's section, with what must differ.

Textual, so that comments and order survive. Pure: it sees and returns the text of params.yaml and dvc.yaml.
"""

import re
from collections.abc import Sequence

from fitladder.dvc_files.experiment_lists import CARRIED, parse_lists
from fitladder.errors import LineageError, RegistrationError
from fitladder.records.experiment import Experiment
from fitladder.registry.load import parse_registry
from fitladder.registry.provenance import FREE, forbidden_roots

__all__ = ["carry_text", "register_text"]

_BY_HAND = "register it by hand, then run `fitladder validate`"


def register_text(params: str, name: str, predecessor: str) -> str:
    """params.yaml with a section `name` at its end: `predecessor`'s, opened, with a root of its own to name.

    Raises RegistrationError where either name is off, or the copy would be no valid registration.
    """
    registry = parse_registry(params)
    source = registry.experiment(predecessor)
    if name in registry.experiments or name == predecessor:
        raise RegistrationError(f"{name} is registered already", need="a new id")
    if not re.fullmatch(r"[a-z0-9][a-z0-9_]{2,79}", name):
        raise RegistrationError("experiment id", got=repr(name), need="3 to 80 of a-z, 0-9 and _")
    lines = _section(params.splitlines(), predecessor)
    body = _rewritten(lines[1:], source, name)
    text = "\n".join([params.rstrip("\n"), "", f"  {name}:", *body]) + "\n"
    made = parse_registry(text).experiment(name)
    for field, value in source.protocol_section().items():
        if field not in FREE and made.protocol_section()[field] != value:
            raise RegistrationError(
                f"the copy of {predecessor} differs in {field}",
                got=made.protocol_section()[field],
                need=value,
                do=_BY_HAND,
            )
    return text


def _section(lines: Sequence[str], experiment_id: str) -> list[str]:
    """The block of lines of one experiment, comments within it included."""
    starts = [at for at, line in enumerate(lines) if re.match(rf"  {experiment_id}:\s*(#.*)?$", line)]
    if len(starts) != 1:
        raise RegistrationError(
            f"params.yaml: {experiment_id} is no plain block", got=f"{len(starts)} headings", do=_BY_HAND
        )
    block = [lines[starts[0]]]
    for line in lines[starts[0] + 1 :]:
        if line.strip() and not line.startswith("   "):
            break
        block.append(line)
    while not block[-1].strip():
        block.pop()
    return block


def _rewritten(body: Sequence[str], source: Experiment, name: str) -> list[str]:
    """The section's lines with state, predecessor, KV rule and artifacts of a follow-up."""
    values = {"state": "open", "predecessor": source.experiment_id, "kv_rule": "both"}
    kept: list[str] = []
    field = ""
    for line in body:
        if match := re.match(r"    (\w+):", line):
            field = match.group(1)
            if field in values:
                kept.append(f"    {field}: {values[field]}")
                continue
        if field not in ("artifacts", "experiment_id"):
            kept.append(line)
    roots = forbidden_roots(source)
    kept += [
        "    artifacts:",
        "      root: null  # register an absolute path of its own, or name one in the variable",
        f"      environment_override: {name.upper()}_ARTIFACT_ROOT",
        "      forbidden_roots:" + ("" if roots else " []"),
        *(f"        - {root}" for root in roots),
    ]
    return kept


def carry_text(graph: str, name: str) -> str:
    """dvc.yaml with `name` at the end of the list of carried experiments. Raises LineageError."""
    lines = graph.splitlines()
    heads = [at for at, line in enumerate(lines) if re.match(rf"\s*- {CARRIED}:", line)]
    if len(heads) != 1:
        raise LineageError("dvc.yaml: vars", got=f"{len(heads)} lists {CARRIED}", need="one", do=_BY_HAND)
    at = heads[0] + 1
    while at < len(lines) and re.match(r"\s+- \w+\s*(#.*)?$", lines[at]):
        at += 1
    text = "\n".join([*lines[:at], f"      - {name}", *lines[at:]]) + "\n"
    before, after = (parse_lists(one, where="dvc.yaml")[CARRIED] for one in (graph, text))
    if after != (*before, name):
        raise LineageError(f"dvc.yaml: vars.{CARRIED}", got=after, need=(*before, name), do=_BY_HAND)
    return text
