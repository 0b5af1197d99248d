"""Lineage: bundles from the external root into DVC, audited, reported, pushed.

Nothing is committed to Git here; the last card says what to type. Run again, it goes on where it stopped.
"""

from pathlib import Path

from prefect import flow

from fitladder.dvc_api.command import Dvc
from fitladder.dvc_api.publish import Carried, carried, run_lineage
from fitladder.dvc_api.remotes import check_settings
from fitladder.registry.load import load_registry
from fitladder.store.root import resolve_root
from fitladder.workspace import workspace_here
from tasks import lineage as steps

__all__ = ["lineage", "run_lineage"]


@flow(name="lineage")
def lineage(experiment: str, root: str | None = None, pushes: bool = True) -> Carried:
    """Bring an experiment's bundles in. `root`: the external root; the registered one where left out."""
    workspace = workspace_here()
    registry = load_registry(workspace.params)
    source = (
        Path(root)
        if root
        else resolve_root(
            registry.experiment(experiment), workspace.environment, others=registry.experiments.values()
        )
    )
    dvc = Dvc(workspace.folder, workspace.environment)
    check_settings(workspace.folder)
    ingested = steps.bring_in(dvc, experiment, source)
    steps.reproduce(dvc, experiment)
    pushed_to = steps.push(dvc, experiment) if pushes else None
    steps.check(dvc, experiment, pushed_to)
    done = carried(workspace.folder, ingested, pushed_to)
    steps.show(done)
    return done
