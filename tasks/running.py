"""Prefect tasks of a phase: the steps of fitladder.phase.run, one call each, and the live line."""

import time
from typing import Any

from prefect import task
from prefect.artifacts import create_progress_artifact, create_table_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE

from fitladder.bundles.receipt import Receipt
from fitladder.engine.process import EngineProcess, GenerationResult
from fitladder.phase import run
from fitladder.phase.live import LiveLine
from fitladder.phase.prompts import ArmPrompts

__all__ = ["authorise", "build", "check_inputs", "commit", "generate", "show_receipt", "write_preflight"]

LIVE_INTERVAL_S = 2.0


@task(cache_policy=NO_CACHE, persist_result=False)
def authorise(site: run.Site, go_sha256: str) -> run.Approved:
    """Ladder, GO and hand-off, from disk."""
    return run.authorise(site, go_sha256)


@task(cache_policy=NO_CACHE, persist_result=False)
def check_inputs(site: run.Site) -> ArmPrompts:
    """Frozen prompts, model and disk space, before any engine."""
    return run.check_inputs(site)


@task(cache_policy=NO_CACHE, persist_result=False)
def build(site: run.Site, engine: EngineProcess, prompts: ArmPrompts) -> run.Built:
    """The live engine's facts and every gate."""
    return run.build(site, engine, prompts)


@task(cache_policy=NO_CACHE, persist_result=False)
def write_preflight(site: run.Site, approved: run.Approved, built: run.Built, prompts: ArmPrompts) -> None:
    """Uses the GO up."""
    run.write_preflight(site, approved, built, prompts)


@task(cache_policy=NO_CACHE, persist_result=False)
def generate(site: run.Site, engine: EngineProcess, built: run.Built) -> GenerationResult:
    """Sampling, with a progress card that moves."""
    card: Any = create_progress_artifact(
        0.0, key=f"live-{site.key.phase}-{site.key.thinking_budget_tokens}", description="generation starts"
    )
    shown_s = 0.0

    def show(line: LiveLine) -> None:
        nonlocal shown_s
        now_s = time.monotonic()
        if now_s - shown_s >= LIVE_INTERVAL_S:
            shown_s = now_s
            update_progress_artifact(card, line.percent, description=line.text)

    result = run.generate(site, engine, built, show)
    update_progress_artifact(card, 100.0, description=f"{result.rows} samples written")
    return result


@task(cache_policy=NO_CACHE, persist_result=False)
def commit(site: run.Site, result: GenerationResult) -> Receipt:
    """Samples, engine metadata, receipt, catalog."""
    return run.commit(site, result)


@task(cache_policy=NO_CACHE, persist_result=False)
def show_receipt(receipt: Receipt) -> None:
    """The receipt's totals as a card."""
    totals = receipt.totals
    rows = [
        {"what": "rows", "value": str(receipt.rows)},
        {"what": "sampled tokens", "value": str(totals.sampled_tokens)},
        {
            "what": "generation, s",
            "value": f"{(totals.stage1_generation_us + totals.stage2_generation_us) / 1e6:.3f}",
        },
        {"what": "preemptions", "value": str(receipt.counters["preemptions"])},
        {"what": "GO", "value": f"{receipt.go_sha256} ({receipt.go_identity})"},
        {"what": "preflight", "value": receipt.preflight_sha256},
    ]
    create_table_artifact(
        rows,
        key=f"receipt-{receipt.key.phase}-{receipt.key.thinking_budget_tokens}",
        description=str(receipt.key),
    )
