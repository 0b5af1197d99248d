"""A launch: validate, show the plan, suspend until somebody answers, dispatch one phase.

A suspended run has no process; it restarts from the top when it is resumed. So every step before the question
finds what it did, and nothing that was true before the answer is trusted after it: the steps before it share
one pass over the root, those after it another.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from prefect import flow, runtime
from prefect.client.schemas.objects import State
from prefect.flow_runs import suspend_flow_run
from prefect.states import Completed, Failed

from fitladder.approval.check import owner_to_ask
from fitladder.approval.form import decision_form, handoff_form
from fitladder.evidence.load import evidence_once
from fitladder.records.approval import Ask
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Phase
from fitladder.registry.load import load_registry
from fitladder.utc import format_utc, parse_utc
from fitladder.workspace import workspace_here
from tasks.asking import (
    dispatch,
    open_ask,
    phase_pool,
    record_decision,
    record_handoff,
    request_handoff,
    show_plan,
)

__all__ = ["handoff", "launch"]

NAMES = {"no_go": "NO-GO", "timed_out": "TimedOut", "expired": "Expired"}


def _seconds_left(ask: Ask) -> int:
    return max(1, int((parse_utc(ask.deadline) - datetime.now(UTC)).total_seconds()))


def _expires(ask: Ask, valid_s: int) -> str:
    return format_utc(parse_utc(ask.asked) + timedelta(seconds=valid_s))


@flow(name="launch", persist_result=True)
def launch(  # noqa: PLR0917 - a deployment's parameters are given by name
    experiment: str,
    phase: Phase,
    budget: int,
    requester: str,
    wait_s: int = 86_400,
    valid_s: int = 172_800,
    starts_lineage: bool = True,
    resume: bool = False,
    again: bool = False,
    binding_sha256: str | None = None,
) -> State[Any]:
    """Ask for one phase at one rung, dispatch it after a GO. Ends cleanly on NO-GO, time-out and expiry.

    `resume`: it was interrupted, and another attempt at it is asked for. `again`: the run of an unused GO of
    it is lost. `binding_sha256`: what the requester's checkout binds; another one here is refused.
    """
    workspace = workspace_here()
    key = BundleKey(experiment_id=experiment, thinking_budget_tokens=budget, phase=phase)
    evidence = evidence_once(workspace, experiment)
    ask = open_ask(
        workspace,
        key,
        str(runtime.flow_run.id),
        requester,
        wait_s,
        resume=resume,
        again=again,
        binding_sha256=binding_sha256,
        load=evidence,
    )
    pool = phase_pool()
    show_plan(workspace, ask, pool, evidence)
    if owner := owner_to_ask(load_registry(workspace.params), pool, requester):
        request_handoff(ask, pool, owner, starts_lineage)
    filled = suspend_flow_run(
        wait_for_input=decision_form(ask, _expires(ask, valid_s)),
        key=f"review-{ask.ask_id}",
        timeout=_seconds_left(ask),
    )
    evidence = evidence_once(workspace, experiment)
    entry = record_decision(workspace, ask, filled.model_dump(), evidence)
    if entry.kind == "go":
        return Completed(message=dispatch(workspace, ask, pool, starts_lineage, evidence))
    message = entry.statement.get("reason") or entry.statement.get("notes") or entry.kind
    if entry.kind == "refused":
        return Failed(name="Refused", message=f"GoRefused: {message}")
    return Completed(name=NAMES[entry.kind], message=message)


@flow(name="handoff", persist_result=True)
def handoff(
    ask: dict[str, Any], work_pool: str, owner: str, valid_s: int = 172_800, starts_lineage: bool = True
) -> State[Any]:
    """The GPU owner lends the pool for one launch, before or after the reviewer's GO."""
    workspace = workspace_here()
    statement = Ask.model_validate(ask)
    filled = suspend_flow_run(
        wait_for_input=handoff_form(statement, owner, work_pool, _expires(statement, valid_s)),
        key=f"handoff-{statement.ask_id}",
        timeout=_seconds_left(statement),
    )
    evidence = evidence_once(workspace, statement.experiment_id)
    record_handoff(workspace, statement, work_pool, filled.model_dump(), evidence)
    return Completed(message=dispatch(workspace, statement, work_pool, starts_lineage, evidence))
