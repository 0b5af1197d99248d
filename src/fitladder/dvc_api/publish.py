"""From an external root to a pushed, audited and reported experiment: the steps of flows/lineage.py.

Each step may be repeated; after an interruption, call the whole once more. Git is the user's: the commit to
make is returned, never made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fitladder.dvc_api.call_lock import project_lock
from fitladder.dvc_api.check import check_lineage, check_remotes, check_replaceable
from fitladder.dvc_api.command import WAIT_S, Dvc
from fitladder.dvc_api.ingest import Ingested, ingest
from fitladder.dvc_api.record_files import check_records
from fitladder.dvc_api.remotes import check_settings, load_remotes
from fitladder.dvc_files.experiment_lists import CARRIED, load_lists
from fitladder.errors import LineageError
from fitladder.records.registry import Registry
from fitladder.registry.data_paths import git_paths, report_paths, selection_path
from fitladder.registry.load import load_registry
from fitladder.registry.provenance import check_parity

__all__ = ["CHAIN", "Carried", "bring_in", "carried", "pull", "push", "reproduce", "run_lineage"]

CHAIN = ("prompts", "bundles", "audit", "selection", "semantics", "report")


@dataclass(frozen=True)
class Carried:
    """Where everything lies now, and what to type next. `pushed_to` is None where no remote is configured."""

    ingested: Ingested
    report: Path
    selection: Path
    pushed_to: str | None
    git_commands: tuple[str, ...]


def bring_in(
    checkout: Path, experiment_id: str, root: Path, environment: Mapping[str, str], *, wait_s: float = WAIT_S
) -> Ingested:
    """Ingest under the project's lock. Raises what `ingest` raises."""
    registry = load_registry(checkout / "params.yaml")
    _check_carried(checkout, registry, experiment_id)
    check_parity(registry, experiment_id, checkout / "data")
    with project_lock(checkout, f"ingest of {experiment_id}", wait_s=wait_s):
        return ingest(registry, experiment_id, root, checkout / "data", environment)


def reproduce(dvc: Dvc, experiment_id: str) -> str:
    """Verify the bundles, record them in dvc.lock, and redo what is stale up to the report.

    DVC's run cache is left out: a stage that ran once elsewhere is no evidence here. Raises LineageError with
    the refusing stage's own line, or where approvals or log are gone.
    """
    check_records(dvc.checkout / "data", experiment_id)
    return dvc.run("repro", "--no-run-cache", f"report@{experiment_id}")


def push(dvc: Dvc, experiment_id: str) -> str | None:
    """Push every output of the experiment to the default remote; its name, or None where there is none."""
    check_settings(dvc.checkout)
    default = next((remote for remote in load_remotes(dvc.checkout) if remote.is_default), None)
    if default is None:
        return None
    dvc.run("push", "--remote", default.name, *(f"{stage}@{experiment_id}" for stage in CHAIN))
    return default.name


def pull(dvc: Dvc, experiment_id: str) -> int:
    """Pull everything of an experiment and verify it; how many objects were hashed.

    Raises LineageError; where DVC could not pull, the object that is missing or corrupt in a remote is named,
    or the output that was changed here and is kept nowhere else.
    """
    check_settings(dvc.checkout)
    try:
        dvc.run("pull", "--with-deps", f"report@{experiment_id}")
    except LineageError:
        check_remotes(dvc.checkout, experiment_id)
        check_replaceable(dvc.checkout, experiment_id)
        raise
    return check_lineage(dvc.checkout, experiment_id)


def run_lineage(
    experiment_id: str, root: Path, checkout: Path, environment: Mapping[str, str], *, pushes: bool = True
) -> Carried:
    """Ingest, reproduce, push, check: all of it, callable again after any interruption.

    Raises FitladderError's kinds as the steps do; nothing that a step finished is lost.
    """
    dvc = Dvc(checkout, environment)
    check_settings(checkout)
    ingested = bring_in(checkout, experiment_id, root, environment)
    reproduce(dvc, experiment_id)
    pushed_to = push(dvc, experiment_id) if pushes else None
    check_lineage(checkout, experiment_id, with_remotes=pushed_to is not None)
    return carried(checkout, ingested, pushed_to)


def carried(checkout: Path, ingested: Ingested, pushed_to: str | None) -> Carried:
    """The summary of a run whose steps are done."""
    name, data = ingested.experiment_id, checkout / "data"
    records = [path for path in git_paths(data, name) if path.exists()]
    added = " ".join(["dvc.lock", *(path.relative_to(checkout).as_posix() for path in records)])
    message = f"{name}: {ingested.bundles} bundles, tree {ingested.tree_sha256[:12]}"
    return Carried(
        ingested=ingested,
        report=report_paths(data, name)[0],
        selection=selection_path(data, name),
        pushed_to=pushed_to,
        git_commands=(f"git add {added}", f'git commit -m "{message}"'),
    )


def _check_carried(checkout: Path, registry: Registry, experiment_id: str) -> None:
    registry.experiment(experiment_id)
    if experiment_id not in load_lists(checkout / "dvc.yaml")[CARRIED]:
        raise LineageError(
            f"{experiment_id} is not carried by dvc.yaml",
            need=f"its id in vars.{CARRIED}",
            do="only registered figures of a recorded experiment are kept here",
        )
