"""Prefect task of a study: run what is not finished, show the table that its measurements give."""

import os
from pathlib import Path

from prefect import get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from fitladder.bundles.lock import hold_lock
from fitladder.errors import UsageError
from fitladder.phase.house import ENGINE_PYTHON, House
from fitladder.study.bundle import VerifiedStudy, verify_study
from fitladder.study.process import cell_command
from fitladder.study.run import StudyHost, run_study
from fitladder.study.table import render_table

__all__ = ["run_cells", "show_study"]


@task(cache_policy=NO_CACHE, persist_result=False)
def run_cells(house: House, name: str, stop_after_s: float | None) -> VerifiedStudy:
    """Every cell that is not finished, each in an engine process of its own; then re-verified."""
    folder = house.data / "studies" / name
    if os.sep in name or not (folder / "study.yaml").is_file():
        raise UsageError(
            "no such study", got=repr(name), need=f"a folder of {folder.parent} with a study.yaml"
        )
    python = Path(house.environment.get(ENGINE_PYTHON) or house.folder / ".venv-vllm" / "bin" / "python")
    logger = get_run_logger()
    host = StudyHost(
        out=folder,
        work=house.folder / "runs" / "studies" / name,
        command=lambda: cell_command(python),
        models=house.folder / "models",
        stop_after_s=stop_after_s,
        say=logger.info,
    )
    house.device_lock.parent.mkdir(exist_ok=True)
    with hold_lock(house.device_lock, f"study {name}"):
        run_study(folder / "study.yaml", host)
    return verify_study(folder)


@task(cache_policy=NO_CACHE, persist_result=False)
def show_study(verified: VerifiedStudy) -> None:
    """The table as a card."""
    text = render_table(verified.study, verified.results)
    create_markdown_artifact(text, key="study", description=verified.receipt.study_id)
