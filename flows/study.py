"""A study on the machine that has the device: the cost of width, graphs, pool and admission.

No GO is asked for: a study samples from weightless or registered models, and no experiment counts its rows.
It holds the device's slot, so that no phase shares the device with it. Run again, it goes on.
"""

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.concurrency.sync import concurrency
from prefect.states import Completed, Failed

from fitladder.workspace import workspace_here
from tasks.studying import run_cells, show_study

__all__ = ["study"]


@flow(name="study", persist_result=False)
def study(name: str, stop_after_s: float | None = None) -> State[Any]:
    """Run what is left of `data/studies/NAME`; `stop_after_s`: start nothing that would end later."""
    workspace = workspace_here()
    with concurrency(
        workspace.slot, occupy=1, lease_duration=60.0, strict=True, raise_on_lease_renewal_failure=False
    ):
        verified = run_cells(workspace, name, stop_after_s)
    show_study(verified)
    receipt = verified.receipt
    message = f"{name}: {receipt.runs} runs, {receipt.cells_complete} of {receipt.cells} cells complete"
    if receipt.failures:
        return Failed(message=f"{message}, {receipt.failures} failures: see table.md")
    return Completed(message=message)
