"""Prefect tasks of a lineage run: one core call each. They may be repeated; nothing is cached."""

from pathlib import Path

from prefect import task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from fitladder.dvc_api import publish as run
from fitladder.dvc_api.check import check_lineage
from fitladder.dvc_api.command import Dvc
from fitladder.dvc_api.ingest import Ingested

__all__ = ["bring_in", "check", "push", "reproduce", "show"]


@task(cache_policy=NO_CACHE, persist_result=False)
def bring_in(dvc: Dvc, experiment_id: str, root: Path) -> Ingested:
    """Verify the root, copy, verify the copy."""
    return run.bring_in(dvc.checkout, experiment_id, root, dvc.environment)


@task(cache_policy=NO_CACHE, persist_result=False)
def reproduce(dvc: Dvc, experiment_id: str) -> str:
    """Bundles verified and recorded; audits, selection, semantics and report redone where stale."""
    return run.reproduce(dvc, experiment_id)


@task(cache_policy=NO_CACHE, persist_result=False)
def push(dvc: Dvc, experiment_id: str) -> str | None:
    """To the default remote, where there is one."""
    return run.push(dvc, experiment_id)


@task(cache_policy=NO_CACHE, persist_result=False)
def check(dvc: Dvc, experiment_id: str, pushed_to: str | None) -> int:
    """Files, cache, remote, dvc.lock and receipts agree."""
    return check_lineage(dvc.checkout, experiment_id, with_remotes=pushed_to is not None)


@task(cache_policy=NO_CACHE, persist_result=False)
def show(carried: run.Carried) -> None:
    """A card with the Git commit to make."""
    lines = "\n".join(carried.git_commands)
    name = carried.ingested.experiment_id
    create_markdown_artifact(
        f"{carried.ingested.bundles} bundles of `{name}` are recorded, "
        f"{f'pushed to {carried.pushed_to}' if carried.pushed_to else 'pushed nowhere'}.\n\n"
        f"[The page of {name}]({carried.report.resolve().as_uri()}) lies on the machine that ran this, "
        f"`{carried.report}`; where no browser opens it from here, `fitladder report {name} --open` does.\n\n"
        f"Commit with\n\n```\n{lines}\n```",
        key="lineage",
    )
