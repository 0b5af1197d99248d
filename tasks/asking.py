"""Prefect tasks of a launch: open the ask, show the plan, record the answer, dispatch, hand over."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE, RUN_ID, TASK_SOURCE
from prefect.client.orchestration import get_client
from prefect.deployments import run_deployment

from fitladder.evidence.load import Evidence
from fitladder.phase import ask as asking
from fitladder.phase.dispatch import check_ready
from fitladder.phase.plan import plan_phase, render_plan
from fitladder.prefect_api.client import api_from_environment
from fitladder.prefect_api.conflicts import check_one_host
from fitladder.records.approval import Ask
from fitladder.records.approval_entry import Entry
from fitladder.records.bundle_key import BundleKey
from fitladder.workspace import Workspace

__all__ = [
    "dispatch",
    "open_ask",
    "phase_pool",
    "record_decision",
    "record_handoff",
    "request_handoff",
    "show_plan",
]

PHASE = "phase/phase"
HANDOFF = "handoff/handoff"


def _now() -> datetime:
    return datetime.now(UTC)


@task(cache_policy=NO_CACHE)
def open_ask(
    workspace: Workspace,
    key: BundleKey,
    ask_id: str,
    requester: str,
    wait_s: int,
    *,
    resume: bool,
    again: bool,
    binding_sha256: str | None,
    load: Callable[[], Evidence],
) -> Ask:
    """Idempotent by `ask_id`, so a flow that restarts from the top asks nothing twice."""
    check_one_host(api_from_environment(workspace.environment), key.experiment_id, workspace.queue)
    return asking.open_ask(
        workspace,
        key,
        ask_id=ask_id,
        requester=requester,
        now=_now(),
        wait_s=wait_s,
        resume=resume,
        again=again,
        binding_sha256=binding_sha256,
        load=load,
    )


@task(cache_policy=NO_CACHE)
def phase_pool() -> str:
    """The work pool that phases are deployed to."""
    with get_client(sync_client=True) as client:
        return str(client.read_deployment_by_name(PHASE).work_pool_name)


@task(persist_result=True, cache_policy=RUN_ID + TASK_SOURCE)
def show_plan(workspace: Workspace, ask: Ask, work_pool: str, load: Callable[[], Evidence]) -> None:
    """The plan as a card that fits one screen, its numbers as a table; once a launch, not at its resume."""
    plan = plan_phase(workspace, ask, work_pool, load=load)
    name = f"{ask.phase}-{ask.thinking_budget_tokens}-{ask.ask_id[:8]}"
    create_markdown_artifact(render_plan(plan), key=f"plan-{name}", description=str(ask.key))
    create_table_artifact(plan.table(), key=f"numbers-{name}", description=str(ask.key))


@task(cache_policy=NO_CACHE)
def record_decision(
    workspace: Workspace, ask: Ask, filled: Mapping[str, Any], load: Callable[[], Evidence]
) -> Entry:
    """Check everything again and append the answer."""
    return asking.decide(workspace, ask, filled, _now(), load=load)


@task(cache_policy=NO_CACHE)
def record_handoff(
    workspace: Workspace, ask: Ask, work_pool: str, filled: Mapping[str, Any], load: Callable[[], Evidence]
) -> Entry:
    """Append the owner's hand-off."""
    return asking.record_handoff(workspace, ask, work_pool, filled, _now(), load=load)


@task(cache_policy=NO_CACHE)
def request_handoff(ask: Ask, work_pool: str, owner: str, starts_lineage: bool) -> None:
    """Start the owner's own form; the reviewer's and this one may be answered in either order."""
    run_deployment(
        HANDOFF,
        parameters={
            "ask": ask.model_dump(mode="json"),
            "work_pool": work_pool,
            "owner": owner,
            "starts_lineage": starts_lineage,
        },
        timeout=0,
        as_subflow=False,  # Prefect suspends no subflow
        idempotency_key=f"handoff-{ask.ask_id}",
        work_queue_name=ask.work_queue,
    )


@task(cache_policy=NO_CACHE)
def dispatch(
    workspace: Workspace, ask: Ask, work_pool: str, starts_lineage: bool, load: Callable[[], Evidence]
) -> str:
    """Send the phase to its pool once GO and hand-off both stand. Same ask, same run: never two."""
    ready = check_ready(workspace, ask, work_pool, _now(), load=load)
    if ready.waits_for is not None:
        get_run_logger().info("not dispatched: %s", ready.waits_for)
        return ready.waits_for
    run: Any = run_deployment(
        PHASE,
        parameters=ready.parameters | {"starts_lineage": starts_lineage},
        timeout=0,
        idempotency_key=f"phase-{ready.parameters['go_sha256']}",
        flow_run_name=f"{ask.phase}-{ask.thinking_budget_tokens}",
        work_queue_name=ask.work_queue,
    )
    return f"dispatched as {run.name}"
