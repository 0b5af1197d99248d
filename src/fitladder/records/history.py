"""Registered figures of an experiment that ran before Fitladder existed: the file, parsed strictly.

`data/history/<experiment>.json` holds numbers and hashes only; no row of such an experiment is kept here.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from fitladder.canonical import parse_model, read_json
from fitladder.errors import InputRefused
from fitladder.frozen import Frozen, Identifier, Sha256, Size
from fitladder.records.experiment import Arm, Phase

__all__ = ["NO_ROWS", "History", "RecordedGeneration", "RecordedPhase", "history_path", "load_history"]

NO_ROWS = "recorded history: no rows are kept here"  # why no answer of it is read


class _Capture(Frozen):
    mode: Literal["exact", "implicit"]
    requested: tuple[Size, ...] | None
    max_requested: Size | None
    resolved: tuple[Size, ...] | None
    decode_graph_mode: str | None
    has_full_graphs: bool | None


class _Capacity(Frozen):
    kv_cache_size_tokens: Size
    block_size_tokens: Size
    rounded_tokens_per_sequence: Size
    required_tokens: Size
    margin_tokens: int


class _Termination(Frozen):
    samples: Size
    boundary_contacts: Size
    forced_closes: Size
    stage1_length_finishes: Size
    answer_restarts_after_natural_close: Size
    loops: Size
    unresolved: Size
    answer_limit_contacts: Size
    periods_tokens: tuple[Size, ...]


class RecordedGeneration(Frozen):
    """Tokens and times of a phase as its own log gave them; None where that log has no figure."""

    sampled_tokens: Size
    generation_s: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    load_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None
    late_jit_warnings: bool | None


class _File(Frozen):
    bytes: Size
    sha256: Sha256


class _Tree(_File):
    files: Size


class RecordedPhase(Frozen):
    """One phase at one rung: geometry, capture, audited counts and digests of files that lie elsewhere."""

    thinking_budget_tokens: Size
    phase: Phase
    arm: Arm
    k: Size
    records: Size
    state: Literal["complete", "preflight_only"]
    max_num_seqs: Size
    capture: _Capture
    capacity: _Capacity
    termination: _Termination | None
    generation: RecordedGeneration | None
    files: dict[str, _File]
    audit_sha256: Sha256 | None


class _Selection(Frozen):
    passed: Annotated[bool, Field(alias="pass")]
    selected_thinking_budget_tokens: Size | None
    bytes: Size
    sha256: Sha256


class History(Frozen):
    """One historic experiment's registered figures. `decision_eligible` False: a diagnostic, cited only."""

    schema_version: Literal[1]
    experiment_id: Identifier
    state: Literal["stopped", "terminal", "diagnostic"]
    binding_sha256: Sha256 | None
    phases: tuple[RecordedPhase, ...]
    selection: _Selection | None
    tree: _Tree | None
    catalog_sha256: Sha256 | None
    settings_sha256: Sha256 | None
    decision_eligible: bool


def history_path(data_dir: Path, experiment_id: str) -> Path:
    """Where the registered figures of an experiment lie."""
    return data_dir / "history" / f"{experiment_id}.json"


def load_history(data_dir: Path, experiment_id: str) -> History | None:
    """The registered figures, or None where the experiment has none. Raises InputRefused on a broken file."""
    path = history_path(data_dir, experiment_id)
    if not path.exists():
        return None
    history = parse_model(History, read_json(path), where=str(path))
    if history.experiment_id != experiment_id:
        raise InputRefused(f"{path}: experiment_id", got=history.experiment_id, need=experiment_id)
    return history
