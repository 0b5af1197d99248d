"""Provenance of a follow-up: what it inherited, recorded once and checked byte for byte from then on.

`data/experiments/<id>/provenance.json`. Inherited inputs equal the predecessor's by SHA-256; one that was
meant to differ is moved to `replaced_inputs`, with the reason.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from fitladder.canonical import canonical_sha256, parse_model, read_json
from fitladder.errors import LineageError
from fitladder.frozen import Frozen, Identifier, Sha256
from fitladder.records.experiment import Experiment, InputName
from fitladder.records.registry import Registry
from fitladder.registry.binding import bind
from fitladder.registry.inputs import survey_inputs

__all__ = ["FREE", "Provenance", "check_parity", "forbidden_roots", "provenance_of", "provenance_path"]

FREE = ("experiment_id", "predecessor", "kv_rule")  # every other bound setting is copied as it stands


class PredecessorArtifacts(Frozen):
    """What the predecessor made. None of it is evidence here."""

    decision_eligible: Literal[False]
    may_be_pooled_or_promoted: Literal[False]
    forbidden_roots: tuple[str, ...]


class Provenance(Frozen):
    """Where a follow-up came from, as of its registration."""

    schema_version: Literal[1]
    experiment_id: Identifier
    predecessor: Identifier
    predecessor_section_sha256: Sha256
    settings_not_copied: dict[str, tuple[Any, Any]]  # field: (predecessor's, the follow-up's first)
    inherited_inputs: dict[InputName, Sha256]
    replaced_inputs: dict[InputName, str] = Field(description="input: why it is another one")
    source_code: dict[str, Sha256]
    predecessor_artifacts: PredecessorArtifacts


def provenance_path(data_dir: Path, experiment_id: str) -> Path:
    """Where a follow-up's provenance lies."""
    return data_dir / "experiments" / experiment_id / "provenance.json"


def forbidden_roots(source: Experiment) -> tuple[str, ...]:
    """What a follow-up may never read: the predecessor's root and everything that was forbidden to it."""
    own = (source.artifacts.root,) if source.artifacts.root else ()
    return tuple(dict.fromkeys((*own, *source.artifacts.forbidden_roots)))


def provenance_of(source: Experiment, made: Experiment) -> Provenance:
    """The record of a follow-up that was registered just now."""
    before, after, binding = source.protocol_section(), made.protocol_section(), bind(made)
    return Provenance(
        schema_version=1,
        experiment_id=made.experiment_id,
        predecessor=source.experiment_id,
        predecessor_section_sha256=canonical_sha256(before),
        settings_not_copied={
            name: (before[name], after[name]) for name in FREE[1:] if before[name] != after[name]
        },
        inherited_inputs=dict(source.data),
        replaced_inputs={},
        source_code={**binding.generation_code, **binding.decision_code},
        predecessor_artifacts=PredecessorArtifacts(
            decision_eligible=False, may_be_pooled_or_promoted=False, forbidden_roots=forbidden_roots(source)
        ),
    )


def check_parity(registry: Registry, experiment_id: str, data_dir: Path) -> Provenance | None:
    """The follow-up still is what it said it inherits; None where an experiment has no recorded provenance.

    Raises LineageError where the record is broken, where the predecessor's registration moved, where an
    inherited input is another one, or where a forbidden root is forbidden no more.
    """
    path, experiment = provenance_path(data_dir, experiment_id), registry.experiment(experiment_id)
    if not path.exists():
        if path.parent.is_dir():
            raise LineageError(
                f"{path} is missing", need="what the follow-up inherited", do="restore it from Git"
            )
        return None
    record = parse_model(Provenance, read_json(path, error=LineageError), where=str(path), error=LineageError)
    source = registry.experiment(record.predecessor)
    for what, got, need in (
        ("experiment_id", record.experiment_id, experiment_id),
        ("predecessor", experiment.predecessor, record.predecessor),
        (
            f"registration of {record.predecessor}",
            canonical_sha256(source.protocol_section()),
            record.predecessor_section_sha256,
        ),
    ):
        if got != need:
            raise LineageError(f"{path}: {what}", got=got, need=need, do="a frozen protocol stays as it is")
    _check_inputs(path, record, experiment, source, data_dir)
    missing = set(record.predecessor_artifacts.forbidden_roots) - set(experiment.artifacts.forbidden_roots)
    if missing:
        raise LineageError(
            f"params.yaml: {experiment_id}: artifacts.forbidden_roots", got="less", need=sorted(missing)[0]
        )
    return record


def _check_inputs(
    path: Path, record: Provenance, experiment: Experiment, source: Experiment, data_dir: Path
) -> None:
    for name, need in record.inherited_inputs.items():
        if name in record.replaced_inputs:
            continue
        for owner in (source, experiment):
            if owner.data.get(name) != need:
                raise LineageError(
                    f"params.yaml: {owner.experiment_id}: data.{name} is not what was inherited",
                    got=owner.data.get(name),
                    need=need,
                    do=f"move {name} to replaced_inputs in {path}, with the reason, or restore it",
                )
    for owner in (source, experiment):
        for state in survey_inputs(data_dir, owner):
            is_kept = state.name in record.inherited_inputs and state.name not in record.replaced_inputs
            if is_kept and state.found_sha256 is not None and not state.right:
                raise LineageError(
                    f"{state.path} is no exact copy any more",
                    got=state.found_sha256,
                    need=state.registered_sha256,
                )
