"""Paths below the data folder: what each stage of dvc.yaml reads and writes, and what Git carries."""

from pathlib import Path

from fitladder.records.bundle_key import BundleKey
from fitladder.records.layout import bundle_folder

__all__ = [
    "audit_path",
    "audits_folder",
    "bundles_folder",
    "git_paths",
    "prompts_folder",
    "record_paths",
    "report_paths",
    "sealed_paths",
    "selection_path",
    "semantics_path",
]


def prompts_folder(data_dir: Path, experiment_id: str) -> Path:
    """The rendered prompts."""
    return data_dir / "prompts" / experiment_id


def bundles_folder(data_dir: Path, experiment_id: str) -> Path:
    """The copy of the experiment's root, less its dot files."""
    return data_dir / "bundles" / experiment_id


def audits_folder(data_dir: Path, experiment_id: str) -> Path:
    """Audits by phase, and their figures."""
    return data_dir / "audits" / experiment_id


def audit_path(data_dir: Path, key: BundleKey) -> Path:
    """The audit of a phase: `<audits>/phases/think_49152_probe.json`."""
    name = bundle_folder(key).replace("/", "_") + ".json"
    return audits_folder(data_dir, key.experiment_id) / "phases" / name


def selection_path(data_dir: Path, experiment_id: str) -> Path:
    """What the ladder says."""
    return data_dir / "selection" / f"{experiment_id}.json"


def semantics_path(data_dir: Path, experiment_id: str) -> Path:
    """What the answers were worth, or why none was read."""
    return data_dir / "semantics" / f"{experiment_id}.json"


def report_paths(data_dir: Path, experiment_id: str) -> tuple[Path, Path]:
    """The page and its Markdown twin."""
    folder = data_dir / "reports"
    return folder / f"{experiment_id}.html", folder / f"{experiment_id}.md"


def record_paths(data_dir: Path, experiment_id: str) -> tuple[Path, Path]:
    """Approvals and running log: kept by Git, empty from the registration on, read by report@X."""
    return data_dir / "approvals" / f"{experiment_id}.jsonl", data_dir / "log" / f"{experiment_id}.jsonl"


def git_paths(data_dir: Path, experiment_id: str) -> tuple[Path, ...]:
    """What Git carries beside dvc.lock as an experiment goes on; uses keep a used GO used in every clone."""
    approvals, log = record_paths(data_dir, experiment_id)
    return approvals, approvals.with_name(f"{experiment_id}.uses.jsonl"), log


def sealed_paths(data_dir: Path, experiment_id: str) -> tuple[Path, ...]:
    """What no content-blind pass may open: hidden examples, and everything that came of decoded answers."""
    page, twin = report_paths(data_dir, experiment_id)
    hidden = data_dir / "inputs" / experiment_id / "hidden.json"
    return hidden, semantics_path(data_dir, experiment_id), page, twin
