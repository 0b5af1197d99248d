"""The registry: params.yaml parsed to frozen experiments that share no root.

It is parsed once, at the boundary; everything behind it sees models. Reads no other file.
"""

from functools import lru_cache
from pathlib import Path

from fitladder.canonical import parse_model
from fitladder.errors import RegistrationError
from fitladder.files.strict_yaml import parse_yaml
from fitladder.records.experiment import Experiment
from fitladder.records.registry import Registry

__all__ = ["check_rung", "is_inside", "load_registry", "parse_registry"]


def check_rung(experiment: Experiment, budget_tokens: int) -> None:
    """A rung of this budget is registered. Raises RegistrationError naming those that are."""
    budgets = [rung.thinking_budget_tokens for rung in experiment.rungs]
    if budget_tokens not in budgets:
        raise RegistrationError(
            f"no such rung of {experiment.experiment_id}",
            got=budget_tokens,
            need=" or ".join(map(str, budgets)),
        )


def load_registry(path: Path) -> Registry:
    """Read and check params.yaml. Raises RegistrationError with the line or the field.

    The bytes are read at every call; a process parses the same bytes once.
    """
    try:
        text = path.read_bytes().decode()  # as it stands: text mode would turn a lone CR into LF
    except (OSError, UnicodeDecodeError) as error:
        raise RegistrationError(
            f"{path} cannot be read", got=error, do="run from the repository or name it with --params"
        ) from error
    return _parsed(text)


def parse_registry(text: str) -> Registry:
    """`load_registry` of text."""
    document = parse_yaml(text, where="params.yaml", error=RegistrationError)
    if not isinstance(document, dict):
        raise RegistrationError("params.yaml holds no mapping", got=type(document).__name__)
    sections = document.get("experiments")
    if not isinstance(sections, dict):
        raise RegistrationError(
            "params.yaml: experiments", got=type(sections).__name__, need="a mapping by id"
        )
    for experiment_id, section in sections.items():
        if isinstance(section, dict):
            section.setdefault("experiment_id", experiment_id)
            if section["experiment_id"] != experiment_id:
                raise RegistrationError(
                    f"params.yaml: experiments.{experiment_id}.experiment_id",
                    got=section["experiment_id"],
                    need=experiment_id,
                )
    registry = parse_model(Registry, document, where="params.yaml", error=RegistrationError)
    _check_disjoint(registry)
    return registry


_parsed = lru_cache(maxsize=1)(parse_registry)


def is_inside(path: str, other: str) -> bool:
    """Whether `path` equals or lies below `other`, as text."""
    left, right = path.rstrip("/").split("/"), other.rstrip("/").split("/")
    return left[: len(right)] == right


def _check_disjoint(registry: Registry) -> None:
    """Roots and override variables are each experiment's own; a follow-up forbids its predecessor's root."""
    roots: dict[str, str] = {}
    variables: dict[str, str] = {}
    for name, experiment in registry.experiments.items():
        artifacts = experiment.artifacts
        where = f"params.yaml: experiments.{name}.artifacts"
        if (owner := variables.setdefault(artifacts.environment_override, name)) != name:
            raise RegistrationError(
                f"{where}.environment_override", got=f"the variable of {owner}", need="its own"
            )
        if artifacts.root is not None:
            for other, root in roots.items():
                if is_inside(artifacts.root, root) or is_inside(root, artifacts.root):
                    raise RegistrationError(
                        f"{where}.root overlaps the root of {other}",
                        got=artifacts.root,
                        need=f"disjoint from {root}",
                    )
            for forbidden in artifacts.forbidden_roots:
                if is_inside(artifacts.root, forbidden) or is_inside(forbidden, artifacts.root):
                    raise RegistrationError(
                        f"{where}.root overlaps a forbidden root",
                        got=artifacts.root,
                        need=f"outside {forbidden}",
                    )
            roots[name] = artifacts.root
        parent = registry.experiments.get(experiment.predecessor or "")
        if parent and parent.artifacts.root and parent.artifacts.root not in artifacts.forbidden_roots:
            raise RegistrationError(
                f"{where}.forbidden_roots lacks the predecessor's root",
                need=parent.artifacts.root,
                do="add it",
            )
