"""Comparison of what Prefect says of each phase with what its files prove.

Truth is the receipt. Nothing is repaired here: a conflict is named, with the run and the phase, for a person.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fitladder.approval.chain import chain_path, load_chain
from fitladder.errors import RootRefused
from fitladder.phase.lock_holder import live_holder
from fitladder.phase.status import ExperimentStatus
from fitladder.prefect_api.approval_conflicts import audit_approvals
from fitladder.prefect_api.client import PrefectApi
from fitladder.prefect_api.runs import FlowRun, flow_runs
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Experiment
from fitladder.registry.load import load_registry
from fitladder.store.root import resolve_root
from fitladder.workspace import Workspace

__all__ = [
    "ComparedPhase",
    "OnDisk",
    "approval_conflicts",
    "check_one_host",
    "compare",
    "compare_status",
    "load_phase_runs",
]

ENDED_BADLY = frozenset({"FAILED", "CRASHED", "CANCELLED"})
HARMLESS_NAMES = frozenset({"Delivered"})  # completed runs that were never to make a receipt


@dataclass(frozen=True)
class OnDisk:
    """One phase as its verified files say. `go_sha256` is None for a phase that was never begun."""

    key: BundleKey
    state: Literal["not_run", "preflight_only", "complete"]
    go_sha256: str | None


@dataclass(frozen=True)
class ComparedPhase:
    """One phase on disk, the run that is compared with it, and the contradiction in words, if any.

    `elsewhere`: state of a run whose receipt can only be on another host so far.
    """

    disk: OnDisk
    run: FlowRun | None
    conflict: str | None
    elsewhere: str | None = None


def load_phase_runs(api: PrefectApi, experiment_id: str) -> tuple[FlowRun, ...]:
    """Every phase run of an experiment that the server knows, oldest first."""
    return tuple(run for run in flow_runs(api, "phase") if run.parameters.get("experiment") == experiment_id)


def check_one_host(api: PrefectApi, experiment_id: str, queue: str) -> None:
    """Raise RootRefused where a phase of the experiment went to another queue, and so to another host."""
    for run in load_phase_runs(api, experiment_id):
        if run.queue != queue:
            raise RootRefused(
                f"{experiment_id} has its root on another host: run {run.name} of it went there",
                got=f"work queue {queue}",
                need=f"work queue {run.queue}",
                do=f"launch with --queue {run.queue}",
            )


def compare(
    phases: Sequence[OnDisk],
    runs: Sequence[FlowRun],
    *,
    root_is_held: bool,
    root_is_here: bool = True,
) -> tuple[ComparedPhase, ...]:
    """Compare each phase with its decisive run: the newest with the GO on disk, else the newest of its key.

    Args:
        phases: what the files prove.
        runs: phase runs of the same experiment, oldest first.
        root_is_held: whether a live process of this host holds the artifact root.
        root_is_here: False on a reader's machine, where a phase that ran elsewhere is no contradiction.

    Returns one entry for each phase, in the order given.
    """
    found = (_compared(disk, _decisive_run(disk, runs), root_is_held=root_is_held) for disk in phases)
    return tuple(found if root_is_here else map(_without_root, found))


def _key_of(parameters: Mapping[str, object]) -> tuple[object, object, object]:
    return parameters.get("experiment"), parameters.get("budget"), parameters.get("phase")


def _decisive_run(disk: OnDisk, runs: Sequence[FlowRun]) -> FlowRun | None:
    wanted = (disk.key.experiment_id, disk.key.thinking_budget_tokens, disk.key.phase)
    mine = [run for run in runs if _key_of(run.parameters) == wanted]
    used = [run for run in mine if run.parameters.get("go_sha256") == disk.go_sha256]
    good = [run for run in used if run.state_type == "COMPLETED"]  # a later refused replay decides nothing
    return next(iter([*reversed(good), *reversed(used), *reversed(mine)]), None)


def _compared(disk: OnDisk, run: FlowRun | None, *, root_is_held: bool) -> ComparedPhase:
    conflict = None
    if run is not None and run.state_name not in HARMLESS_NAMES:
        name = f"run {run.name} says {run.state_name}"
        if run.state_type in ENDED_BADLY and disk.state == "complete":
            conflict = f"{name} over a valid receipt: the receipt counts"
        elif run.state_type == "COMPLETED" and disk.state != "complete":
            conflict = f"{name}, but the disk has no receipt: nothing was completed"
        elif run.state_type in ("RUNNING", "CANCELLING") and not root_is_held:
            over = (
                "over a valid receipt" if disk.state == "complete" else f"over {disk.state.replace('_', ' ')}"
            )
            conflict = f"{name} {over}, but nobody on this host holds the root: it is dead or elsewhere"
    return ComparedPhase(disk, run, conflict)


def _without_root(one: ComparedPhase) -> ComparedPhase:
    """Take a conflict back that the absent root explains: the run goes on, or is done, on another host."""
    run = one.run
    if run is None or one.disk.state == "complete" or run.state_type in ENDED_BADLY:
        return one
    if run.state_name in HARMLESS_NAMES:
        return one
    says = f"run {run.name} says {run.state_name} on queue {run.queue}"
    return ComparedPhase(one.disk, run, None, f"{says}; no receipt of it is here yet")


def approval_conflicts(api: PrefectApi, workspace: Workspace, status: ExperimentStatus) -> tuple[str, ...]:
    """`audit_approvals` for one experiment of `fitladder status`. Raises GoRefused on a broken chain."""
    experiment_id = status.experiment.experiment_id
    return audit_approvals(
        load_chain(chain_path(workspace.approvals, experiment_id), experiment_id),
        launches=[
            run for run in flow_runs(api, "launch") if run.parameters.get("experiment") == experiment_id
        ],
        phases=load_phase_runs(api, experiment_id),
        used=[phase.go_sha256 for phase in status.phases if phase.go_sha256],
        is_whole=_root_here(workspace, status.experiment) is not None,
    )


def compare_status(
    api: PrefectApi, workspace: Workspace, status: ExperimentStatus
) -> tuple[ComparedPhase, ...]:
    """`compare` for everything that `fitladder status` shows of an experiment."""
    experiment_id = status.experiment.experiment_id
    root = _root_here(workspace, status.experiment)
    return compare(
        [OnDisk(phase.key, phase.state, phase.go_sha256) for phase in status.phases],
        load_phase_runs(api, experiment_id),
        root_is_held=root is not None and live_holder(root) is not None,
        root_is_here=root is not None,
    )


def _root_here(workspace: Workspace, experiment: Experiment) -> Path | None:
    """Path of the root, not verified: the status that is shown has verified it."""
    try:
        others = load_registry(workspace.params).experiments.values()
        return resolve_root(experiment, workspace.environment, others=others)
    except RootRefused:
        return None  # a reader's laptop: nobody here can hold it
