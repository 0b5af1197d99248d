"""One GO, one engine, one phase, one receipt; on the machine that has the device.

Truth is the receipt: a phase that has a valid one is not run again, whoever asks and however often. The slot
`gpu-0` is held only while there is an engine; a slot nobody created is an error, not a warning.
"""

import os
from datetime import UTC, datetime
from typing import Any

from prefect import flow, get_run_logger, runtime
from prefect.client.schemas.objects import State
from prefect.concurrency.sync import concurrency
from prefect.states import Completed

from fitladder.errors import FitladderError, RootBusy
from fitladder.phase import run
from fitladder.phase.dispatch import window_go
from fitladder.phase.phase_log import phase_log
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Phase
from fitladder.records.receipt import Receipt
from fitladder.registry.load import load_registry
from fitladder.workspace import workspace_here
from tasks.running import (
    authorise,
    build,
    check_inputs,
    commit,
    generate,
    show_receipt,
    start_lineage,
    write_preflight,
)

__all__ = ["phase", "scheduled_phase"]

POOL = "FITLADDER_WORK_POOL"  # set by `fitladder agent`
LEASE_S = 60.0  # Prefect's shortest: a killed run gives its slot back so soon; renewed while the engine lives


def _work_pool() -> str:
    return os.environ.get(POOL, "fitladder-gpu")


def run_logged_phase(key: BundleKey, go_sha256: str) -> tuple[Receipt, bool]:
    """`run_phase`, with its steps in the workspace's log file of the phase."""
    with phase_log(workspace_here(), key, go_sha256):
        return run_phase(key, go_sha256)


def run_phase(key: BundleKey, go_sha256: str) -> tuple[Receipt, bool]:
    """The receipt, and whether it was made now."""
    workspace = workspace_here()
    with run.hold_phase(workspace, key, _work_pool(), flow_run_id=str(runtime.flow_run.id)) as held:
        if receipt := run.existing_receipt(held):
            return receipt, False
        approved = authorise(held, go_sha256)
        prompts = check_inputs(held)
        # Giving the slot back needs the server; the receipt does not wait for that.
        with concurrency(
            workspace.slot,
            occupy=1,
            lease_duration=LEASE_S,
            strict=True,
            raise_on_lease_renewal_failure=False,  # a server that is away ends no generation
        ):
            with run.start_engine(held, prompts) as engine:
                built = build(held, engine, prompts)
                write_preflight(held, approved, built, prompts)
                result = generate(held, engine, built)
            receipt = commit(held, result)
    show_receipt(receipt)
    return receipt, True


@flow(name="phase", persist_result=False)
def phase(  # noqa: PLR0917 - a deployment's parameters are given by name
    experiment: str,
    phase: Phase,
    budget: int,
    go_sha256: str,
    approvals: str = "",
    run_now: bool = True,
    starts_lineage: bool = True,
) -> State[Any]:
    """Run one approved phase, or only take its approvals over for the scheduled agent.

    `starts_lineage`: start a lineage run for the new receipt.
    """
    key = BundleKey(experiment_id=experiment, thinking_budget_tokens=budget, phase=phase)
    workspace = workspace_here()
    run.adopt_approvals(workspace, experiment, approvals)
    if not run_now:
        return Completed(name="Delivered", message=f"{key} waits for the agent's window")
    receipt, made_now = run_logged_phase(key, go_sha256)
    if starts_lineage:
        start_lineage(workspace, receipt)
    name = None if made_now else "AlreadyDone"
    return Completed(name=name, message=f"{key}: {receipt.rows} samples, receipt of GO {go_sha256[:12]}")


@flow(name="scheduled-phase", persist_result=False)
def scheduled_phase() -> State[Any]:
    """Take the next approved phase whose GO allows the window; do nothing where there is none."""
    workspace, logger = workspace_here(), get_run_logger()
    for experiment_id in load_registry(workspace.params).experiments:
        try:
            go = window_go(workspace, experiment_id, _work_pool(), datetime.now(UTC))
            if go is None:
                continue
            receipt, made_now = run_logged_phase(go.key, go.sha256)
        except RootBusy as busy:
            return Completed(name="Busy", message=str(busy))
        except FitladderError as refusal:
            logger.warning("%s: %s", experiment_id, refusal)
            raise
        if made_now:
            start_lineage(workspace, receipt)
            return Completed(message=f"{go.key}: {receipt.rows} samples")
    return Completed(name="Idle", message="no approved phase for this window")
