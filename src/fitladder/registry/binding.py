"""The binding: one digest over the section, the data and the code that can change a result.

The bound code is the import closure, within this package, of the modules named below: a module that
generation or a decision cannot reach is not bound, one that it can reach cannot be forgotten.
Generation and decision code are told apart: bundles answer to the first, audits are re-run under the second.
"""

import ast
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import fitladder
from fitladder.canonical import canonical_sha256, sha256_bytes
from fitladder.errors import BindingChanged
from fitladder.records.binding import Binding, Moved
from fitladder.records.experiment import Experiment
from fitladder.registry.restart_advice import restart_advice

__all__ = [
    "PACKAGE",
    "bind",
    "check_generation",
    "check_whole",
    "generation_code_sha256",
    "import_closure",
    "moved",
]

PACKAGE = Path(fitladder.__file__).parent
GENERATION_ENTRIES = (
    "engine/parent/llm_arguments.py",
    "engine/parent/process.py",
    "engine/child/vllm_engine.py",
    "gates/all_gates.py",
    "prompts/manifest.py",
    "prompts/render.py",
    "prompts/tokenizer.py",
)
DECISION_ENTRIES = (
    "audit/termination.py",
    "ladder/authorise.py",
    "ladder/select.py",
    "evidence/audit_bundle.py",  # which columns an audit is given, and what the ladder is told of it
    "evidence/outcomes.py",
    "stages/semantics.py",  # which ids count as the answer
    "phase/run.py",  # whether the gates, the ladder and the GO are asked at all
    "semantics/analyse.py",
)
UNBOUND = frozenset(
    {"__init__.py", "errors.py", "registry/load.py", "registry/binding.py"}
)  # no result in them


def _source(module: str) -> Path | None:
    """A dotted module name as a path in this package, or None where it is a name inside a module."""
    base = PACKAGE.joinpath(*module.split(".")[1:])
    if base.with_suffix(".py").is_file():
        return base.with_suffix(".py")
    return base / "__init__.py" if (base / "__init__.py").is_file() else None


@lru_cache(maxsize=1024)
def _imported_names(source: bytes) -> frozenset[str]:
    """What these bytes import of this package: modules, and names that could be one."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
    return frozenset(name for name in names if name.split(".")[0] == "fitladder")


def _imports(path: Path) -> set[Path]:
    return {source for name in _imported_names(path.read_bytes()) if (source := _source(name))}


def import_closure(entries: Iterable[str]) -> tuple[str, ...]:
    """Sorted package-relative paths of everything that `entries` import, themselves included."""
    waiting = [PACKAGE / entry for entry in entries]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in seen or path.relative_to(PACKAGE).as_posix() in UNBOUND:
            continue
        seen.add(path)
        waiting.extend(_imports(path))
    return tuple(sorted(path.relative_to(PACKAGE).as_posix() for path in seen))


def bind(experiment: Experiment) -> Binding:
    """The binding of this experiment under the code of this package, by the raw bytes of its files."""
    generation = import_closure(GENERATION_ENTRIES)
    decision = tuple(path for path in import_closure(DECISION_ENTRIES) if path not in set(generation))
    digests = _digests((*generation, *decision))
    body: dict[str, Any] = {
        "schema_version": 1,
        "experiment_id": experiment.experiment_id,
        "section": experiment.protocol_section(),
        "data": dict(experiment.data),
        "generation_code": {path: digests[path] for path in generation},
    }
    body["generation_sha256"] = canonical_sha256(body)
    body["decision_code"] = {path: digests[path] for path in decision}
    return Binding(**body, binding_sha256=canonical_sha256(body))


def generation_code_sha256() -> str:
    """One digest over the generation code that this very process imports from."""
    return canonical_sha256(_digests(import_closure(GENERATION_ENTRIES)))


def _digests(paths: Iterable[str]) -> dict[str, str]:
    return {path: sha256_bytes((PACKAGE / path).read_bytes()) for path in paths}


def _leaves(value: Any, where: str) -> dict[str, Any]:
    """Nested plain data as {dotted path: leaf}."""
    if isinstance(value, dict):
        children = [(f"{where}.{name}", item) for name, item in value.items()]
    elif isinstance(value, list):
        children = [(f"{where}[{index}]", item) for index, item in enumerate(value)]
    else:
        return {where: value}
    return {path: leaf for child, item in children for path, leaf in _leaves(item, child).items()}


def moved(old: Binding, new: Binding) -> tuple[Moved, ...]:
    """Every field, data file and module that differs, sorted; empty exactly when the bindings are equal."""
    parts = ("section", "data", "generation_code", "decision_code")
    before, after = (
        {
            "experiment_id": binding.experiment_id,
            **{key: leaf for part in parts for key, leaf in _leaves(getattr(binding, part), part).items()},
        }
        for binding in (old, new)
    )
    return tuple(
        Moved(part=part, old=before.get(part), new=after.get(part))
        for part in sorted(before.keys() | after.keys())
        if (part in before) != (part in after) or before.get(part) != after.get(part)
    )


def check_generation(recorded: Binding, now: Binding, *, where: str) -> None:
    """Refuse a bundle made under another protocol, other data or other generation code than `now`.

    `where` names the bundle's folder. Raises BindingChanged naming the first part that differs, old and new.
    """
    if recorded.generation_sha256 == now.generation_sha256:
        return
    first = next(
        (change for change in moved(recorded, now) if not change.part.startswith("decision_code")), None
    )
    raise BindingChanged(
        f"{where} was made under another binding" + (f" ({first.part} moved)" if first else ""),
        got=first.old if first else recorded.generation_sha256,
        need=first.new if first else now.generation_sha256,
        do=f"bundles keep their binding (see `fitladder binding {now.experiment_id} --diff {where}`): "
        f"check out the commit that they were made at, or {restart_advice(now.experiment_id)}",
    )


def check_whole(recorded: Binding, now: Binding, *, where: str) -> None:
    """Refuse to go on under another binding than `where` has, decision code included: no selection could
    count both. Raises BindingChanged with both digests.
    """
    if recorded.binding_sha256 == now.binding_sha256:
        return
    first = next(iter(moved(recorded, now)), None)
    raise BindingChanged(
        f"the binding moved since {where}" + (f" ({first.part})" if first else ""),
        got=now.binding_sha256,
        need=recorded.binding_sha256,
        do=f"nothing decides over two bindings: check out the commit of {where} "
        f"(see `fitladder binding {now.experiment_id} --explain`), or {restart_advice(now.experiment_id)}",
    )
