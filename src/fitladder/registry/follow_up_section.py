"""Text of a follow-up in params.yaml and dvc.yaml: the predecessor's section, with what must differ.

Comments and order survive, and no byte of what was there changes. Pure: it sees and returns the text of
params.yaml and dvc.yaml.
"""

import copy
import io
import itertools
import re
from collections.abc import Callable
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError
from ruamel.yaml.representer import RoundTripRepresenter

from fitladder.dvc_files.experiment_lists import CARRIED, parse_lists
from fitladder.errors import FitladderError, LineageError, RegistrationError
from fitladder.records.experiment import Experiment
from fitladder.registry.load import parse_registry
from fitladder.registry.provenance import FREE, forbidden_roots

__all__ = ["carry_text", "register_text"]

_ROOT_COMMENT = "register an absolute path of its own, or name one in the variable"
_NO_FOLDING = 1 << 20  # characters of a line; long plain text stays on its line
_BY_HAND = "register it by hand, then run `fitladder validate`"


class _ExplicitNull(RoundTripRepresenter):
    """Writes `null` where ruamel.yaml leaves the value out; its own class, since representers are shared."""

    def represent_none(self, data: Any) -> Any:
        """The word `null`."""
        return self.represent_scalar("tag:yaml.org,2002:null", "null")


_ExplicitNull.add_representer(type(None), _ExplicitNull.represent_none)


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
    head, inserted, tail = _insertion(
        params,
        lambda document: _copy_section(document, source, name),
        where="params.yaml",
        error=RegistrationError,
    )
    text = f"{head}\n{inserted}{tail}"
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


def _copy_section(document: Any, source: Experiment, name: str) -> None:
    """Add `name` behind all experiments: `source`'s section, with what a follow-up has of its own."""
    section = copy.deepcopy(document["experiments"][source.experiment_id])
    section.pop("experiment_id", None)
    section.pop("artifacts")
    section["state"], section["predecessor"], section["kv_rule"] = "open", source.experiment_id, "both"
    artifacts = CommentedMap(
        root=None,
        environment_override=f"{name.upper()}_ARTIFACT_ROOT",
        forbidden_roots=list(forbidden_roots(source)),
    )
    artifacts.yaml_add_eol_comment(
        "register an absolute path of its own, or name one in the variable", "root"
    )
    section["artifacts"] = artifacts
    document["experiments"][name] = section


def carry_text(graph: str, name: str) -> str:
    """dvc.yaml with `name` at the end of the list of carried experiments; every other byte stays.

    Raises LineageError where the list is not there once, or the file's layout would not survive the edit.
    """

    def carry(document: Any) -> None:
        (carried,) = (one[CARRIED] for one in document["vars"] if CARRIED in one)
        carried.append(name)

    before = parse_lists(graph, where="dvc.yaml")[CARRIED]
    head, inserted, tail = _insertion(graph, carry, where="dvc.yaml", error=LineageError)
    text = head + inserted + tail
    after = parse_lists(text, where="dvc.yaml")[CARRIED]
    if after != (*before, name):
        raise LineageError(f"dvc.yaml: vars.{CARRIED}", got=after, need=(*before, name), do=_BY_HAND)
    return text


def _insertion(
    text: str, edit: Callable[[Any], None], *, where: str, error: type[FitladderError]
) -> tuple[str, str, str]:
    """What `edit` of the loaded document inserts: the text before it, the new lines, the text behind it.

    ruamel.yaml keeps comments, order and quotes. A layout that it would write otherwise, and an edit that
    changes a byte of what was there, are refused as `error`.
    """
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = _NO_FOLDING
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.Representer = _ExplicitNull
    try:
        document = yaml.load(text)
    except YAMLError as failure:
        raise error(f"{where} cannot be edited", got=failure, do=_BY_HAND) from failure
    if (kept := _dumped(yaml, document)) != text:
        line = _common_head(text, kept).count("\n") + 1
        raise error(
            f"{where} line {line} is no plain block", need="block style, indented by two", do=_BY_HAND
        )
    edit(document)
    made = _dumped(yaml, document)
    head = _common_head(text, made)
    tail = text[len(head) :]
    if not made.endswith(tail) or len(made) < len(text):
        raise error(f"{where}: other lines would change", need="an insertion alone", do=_BY_HAND)
    return head, made[len(head) : len(made) - len(tail)], tail


def _common_head(one: str, other: str) -> str:
    """The leading lines that both texts have in common."""
    pairs = zip(one.splitlines(keepends=True), other.splitlines(keepends=True), strict=False)
    return "".join(line for line, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _dumped(yaml: YAML, document: Any) -> str:
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()
