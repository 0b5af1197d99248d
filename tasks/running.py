"""Prefect tasks of a phase: the steps of fitladder.phase.run, one call each, and the live line."""

import logging
import time
from collections.abc import Callable
from typing import Any

import httpx
from prefect import get_run_logger, task
from prefect.artifacts import create_progress_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError

from fitladder.engine.messages import GenerationResult
from fitladder.engine.parent.process import EngineProcess
from fitladder.errors import EnvironmentNotReady
from fitladder.phase import run
from fitladder.phase.phase_log import logged_step
from fitladder.phase.progress_line import LiveLine
from fitladder.phase.prompt_tokens import ArmPrompts
from fitladder.prefect_api.client import api_from_environment
from fitladder.records.generation_time import generation_s
from fitladder.records.receipt import Receipt
from fitladder.workspace import Workspace

__all__ = [
    "authorise",
    "build",
    "check_inputs",
    "commit",
    "generate",
    "show_receipt",
    "start_lineage",
    "write_preflight",
]

LIVE_INTERVAL_S = 2.0
SERVER_AWAY_S = 30.0  # a generation outlives its server; we look for it again this often
LINEAGE = "lineage/lineage"
log = logging.getLogger("fitladder.tasks")  # below the name whose lines the phase's log file takes


def _tell(call: Callable[[], Any]) -> bool:
    """Whether the server heard it. What it does not hear stops nothing: truth is the receipt."""
    try:
        call()
    except (ObjectNotFound, PrefectHTTPStatusError, httpx.HTTPError):
        return False
    return True


def _update(card: object, percent: float, text: str) -> bool:
    """Move the progress card, or say no at once: Prefect's own client waits a minute for a lost server."""
    body = {"data": percent, "description": text}
    try:
        api_from_environment().request("PATCH", f"/artifacts/{card}", body, patience_s=0.0)
    except EnvironmentNotReady:
        return False
    return True


@task(cache_policy=NO_CACHE, persist_result=False)
@logged_step("authorise")
def authorise(held: run.HeldPhase, go_sha256: str) -> run.Approved:
    """Ladder, GO and hand-off, from disk."""
    return run.authorise(held, go_sha256)


@task(cache_policy=NO_CACHE, persist_result=False)
@logged_step("check inputs")
def check_inputs(held: run.HeldPhase) -> ArmPrompts:
    """Frozen prompts, model and disk space, before any engine."""
    return run.check_inputs(held)


@task(cache_policy=NO_CACHE, persist_result=False)
@logged_step("build engine and run gates")
def build(held: run.HeldPhase, engine: EngineProcess, prompts: ArmPrompts) -> run.Built:
    """The live engine's facts and every gate."""
    return run.build(held, engine, prompts)


@task(cache_policy=NO_CACHE, persist_result=False)
@logged_step("write preflight")
def write_preflight(
    held: run.HeldPhase, approved: run.Approved, built: run.Built, prompts: ArmPrompts
) -> None:
    """Uses the GO up."""
    run.write_preflight(held, approved, built, prompts)


@task(cache_policy=NO_CACHE, persist_result=False)
@logged_step("generate")
def generate(held: run.HeldPhase, engine: EngineProcess, built: run.Built) -> GenerationResult:
    """Sampling, with a progress card that moves."""
    card: Any = create_progress_artifact(
        0.0, key=f"live-{held.key.phase}-{held.key.thinking_budget_tokens}", description="generation starts"
    )
    next_s = 0.0

    def show(line: LiveLine) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            log.info("%s", line.text)
            reached = _update(card, line.percent, line.text)
            next_s = time.monotonic() + (LIVE_INTERVAL_S if reached else SERVER_AWAY_S)

    result = run.generate(held, engine, built, show)
    _update(card, 100.0, f"{result.rows} samples written")
    return result


@task(cache_policy=NO_CACHE, persist_result=False)
@logged_step("commit")
def commit(held: run.HeldPhase, result: GenerationResult) -> Receipt:
    """Samples, engine metadata, receipt, catalog."""
    return run.commit(held, result)


@task(cache_policy=NO_CACHE, persist_result=False)
def show_receipt(receipt: Receipt) -> None:
    """The receipt's totals as a card."""
    totals = receipt.totals
    rows = [
        {"what": "rows", "value": str(receipt.rows)},
        {"what": "sampled tokens", "value": str(totals.sampled_tokens)},
        {
            "what": "generation, s",
            "value": f"{generation_s(totals):.3f}",
        },
        {"what": "preemptions", "value": str(receipt.counters["preemptions"])},
        {"what": "GO", "value": f"{receipt.go_sha256} ({receipt.go_identity})"},
        {"what": "preflight", "value": receipt.preflight_sha256},
    ]
    name = f"receipt-{receipt.key.phase}-{receipt.key.thinking_budget_tokens}"
    _tell(lambda: create_table_artifact(rows, key=name, description=str(receipt.key)))


@task(cache_policy=NO_CACHE, persist_result=False)
def start_lineage(workspace: Workspace, receipt: Receipt) -> None:
    """Start the lineage of this receipt, once. A receipt stands without it, so a failure is only logged."""
    started = _tell(
        lambda: run_deployment(
            LINEAGE,
            parameters={"experiment": receipt.key.experiment_id},
            timeout=0,
            as_subflow=False,
            idempotency_key=f"lineage-{receipt.preflight_sha256}",
            work_queue_name=workspace.queue,  # beside the root
        )
    )
    if not started:
        name = receipt.key.experiment_id
        get_run_logger().warning("lineage was not started; run `fitladder lineage ingest %s`", name)
