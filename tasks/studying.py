"""Prefect task of a study: run what is not finished, show the table that its measurements give."""

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from fitladder.study.bundle import VerifiedStudy
from fitladder.study.checkout import run_here, study_host
from fitladder.study.table import render_table
from fitladder.workspace import Workspace

__all__ = ["run_cells", "show_study"]


@task(cache_policy=NO_CACHE, persist_result=False)
def run_cells(workspace: Workspace, name: str, stop_after_s: float | None) -> VerifiedStudy:
    """Every cell that is not finished, each in an engine process of its own; then re-verified."""
    host = study_host(workspace, name, say=get_run_logger().info, stop_after_s=stop_after_s)
    return run_here(workspace, host)


@task(cache_policy=NO_CACHE, persist_result=False)
def show_study(verified: VerifiedStudy) -> None:
    """The table as a card."""
    text = render_table(verified.study, verified.results)
    create_markdown_artifact(text, key="study", description=verified.receipt.study_id)
