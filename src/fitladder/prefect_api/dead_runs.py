"""Closing of phase runs that the server believes to be running here although their process is gone.

A dead run would keep its place in the work pool for ever. Only what the disk of this host proves is closed:
a lock that names the dead process, or a phase of its GO that no process works on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fitladder.errors import RootRefused
from fitladder.evidence.load import Evidence, load_evidence
from fitladder.files.lock import Holder
from fitladder.phase.lock_holder import dead_holder, live_holder
from fitladder.prefect_api.client import PrefectApi
from fitladder.prefect_api.runs import FlowRun, flow_runs, set_state
from fitladder.registry.load import load_registry
from fitladder.store.root import resolve_root
from fitladder.workspace import Workspace

__all__ = ["Closed", "close_dead_runs"]

FLOWS = ("phase", "scheduled-phase")
UNFINISHED = ("RUNNING", "PENDING", "CANCELLING")


@dataclass(frozen=True)
class Closed:
    """A run that was closed, how, and the proof."""

    run: FlowRun
    state_name: str
    why: str


def close_dead_runs(api: PrefectApi, workspace: Workspace) -> tuple[Closed, ...]:
    """Close every phase run of this host whose process is gone; whatever is not proved stays open.

    A run with a valid receipt becomes completed, any other crashed. Raises what reading a root raises.
    """
    open_runs = [run for flow in FLOWS for run in flow_runs(api, flow, state_types=UNFINISHED)]
    if not open_runs:
        return ()
    proofs = _proofs(workspace, {run.parameters.get("experiment") for run in open_runs})
    closed = [Closed(run, *proof) for run in open_runs if (proof := _proof(proofs, run))]
    for one in closed:
        state_type = "COMPLETED" if one.state_name == "Completed" else "CRASHED"
        set_state(api, one.run, state_type, one.state_name, one.why)
    return tuple(closed)


def _proof(proofs: Mapping[Any, tuple[str, str]], run: FlowRun) -> tuple[str, str] | None:
    """The strongest proof: a receipt before a dead process, that before a preflight."""
    of_go, of_process = proofs.get(run.parameters.get("go_sha256")), proofs.get(run.run_id)
    return of_go if of_go and of_go[0] == "Completed" else of_process or of_go


def _proofs(workspace: Workspace, asked: set[Any]) -> Mapping[Any, tuple[str, str]]:
    """How runs ended and the proof, by flow-run id or GO, for every root that no process here holds."""
    found: dict[Any, tuple[str, str]] = {}
    registered = load_registry(workspace.params).experiments
    for name, experiment in registered.items():
        try:
            root = resolve_root(experiment, workspace.environment, others=registered.values())
        except RootRefused:
            continue  # no root of this experiment is on this host
        if live_holder(root) is None:
            found |= _of_lock(dead_holder(root))
            if name in asked:
                found |= _of_disk(load_evidence(workspace, name))
    return found


def _of_lock(holder: Holder | None) -> dict[Any, tuple[str, str]]:
    if holder is None or holder.flow_run_id is None:
        return {}
    return {holder.flow_run_id: ("Crashed", f"{holder} is gone")}


def _of_disk(evidence: Evidence) -> dict[Any, tuple[str, str]]:
    begun = {
        one.go_sha256: ("Crashed", f"{one.key}: preflight only, nobody generates") for one in evidence.begun
    }
    receipts = [bundle.receipt for bundle in evidence.bundles]
    return begun | {one.go_sha256: ("Completed", f"{one.key}: its receipt stands") for one in receipts}
