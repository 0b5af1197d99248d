"""Flow runs on the server: created, listed, answered and closed over REST.

Values are plain. What a run says of itself is never proof of what happened on disk.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fitladder.errors import EnvironmentNotReady, GoRefused
from fitladder.prefect_api.client import PrefectApi
from fitladder.records.work_queue import DEFAULT_QUEUE

__all__ = [
    "FINAL",
    "FlowRun",
    "create_run",
    "flow_runs",
    "input_schema",
    "live_line",
    "read_run",
    "resume_run",
    "run_of_go",
    "set_state",
    "waiting_runs",
]

FINAL = frozenset({"COMPLETED", "FAILED", "CRASHED", "CANCELLED"})
PAGE = 200


@dataclass(frozen=True)
class FlowRun:
    """One flow run as the server has it."""

    run_id: str
    name: str
    flow: str
    state_type: str  # SCHEDULED, PENDING, RUNNING, PAUSED, COMPLETED, FAILED, CRASHED, CANCELLED, ...
    state_name: str  # Suspended, NO-GO, ...
    message: str
    parameters: Mapping[str, Any]
    queue: str = DEFAULT_QUEUE  # the work queue, that is the host, it was sent to

    @property
    def is_final(self) -> bool:
        return self.state_type in FINAL


def _run(document: Mapping[str, Any], flows: Mapping[str, str]) -> FlowRun:
    state = document.get("state") or {}
    return FlowRun(
        run_id=document["id"],
        name=document["name"],
        flow=flows.get(document["flow_id"], ""),
        state_type=state.get("type") or "UNKNOWN",
        state_name=state.get("name") or "Unknown",
        message=state.get("message") or "",
        parameters=document.get("parameters") or {},
        queue=document.get("work_queue_name") or DEFAULT_QUEUE,
    )


def _flow_names(api: PrefectApi) -> dict[str, str]:
    return {flow["id"]: flow["name"] for flow in api.find("/flows/filter", {"limit": PAGE})}


def flow_runs(api: PrefectApi, flow: str, *, state_types: tuple[str, ...] = ()) -> tuple[FlowRun, ...]:
    """Every run of a flow, oldest first, all pages; optionally only in some state types."""
    body: dict[str, Any] = {
        "flows": {"name": {"any_": [flow]}},
        "sort": "EXPECTED_START_TIME_ASC",
        "limit": PAGE,
        "offset": 0,
    }
    if state_types:
        body["flow_runs"] = {"state": {"type": {"any_": list(state_types)}}}
    names = _flow_names(api)
    found: list[FlowRun] = []
    while True:
        page = api.find("/flow_runs/filter", body)
        found.extend(_run(document, names) for document in page)
        if len(page) < PAGE:
            return tuple(found)
        body["offset"] += PAGE


def read_run(api: PrefectApi, run_id: str) -> FlowRun:
    """One run. Raises EnvironmentNotReady where the server has none of that id."""
    document = api.read(f"/flow_runs/{run_id}")
    if document is None:
        raise EnvironmentNotReady(f"the server at {api.url} knows no flow run {run_id}")
    return _run(document, _flow_names(api))


def waiting_runs(api: PrefectApi, flow: str, parameters: Mapping[str, Any]) -> tuple[FlowRun, ...]:
    """Suspended runs of a flow whose parameters agree with the given ones, oldest first."""
    return tuple(
        run
        for run in flow_runs(api, flow, state_types=("PAUSED",))
        if all(run.parameters.get(name) == value for name, value in parameters.items())
    )


def create_run(
    api: PrefectApi, deployment: str, parameters: Mapping[str, Any], *, queue: str = DEFAULT_QUEUE
) -> FlowRun:
    """Create a run of a deployment, due now, once even where the request has to be sent again.

    Args:
        deployment: `flow/name`.
        parameters: of the flow, as JSON values.
        queue: work queue of the host that shall run it.

    Raises EnvironmentNotReady where it is not deployed or not accepted.
    """
    found = api.read(f"/deployments/name/{deployment}")
    if found is None:
        raise EnvironmentNotReady(
            f"{deployment} is not deployed at {api.url}", do="run `prefect --no-prompt deploy --all`"
        )
    answer = api.request(
        "POST",
        f"/deployments/{found['id']}/create_flow_run",
        {
            "parameters": dict(parameters),
            "state": {"type": "SCHEDULED"},
            "work_queue_name": queue,
            "idempotency_key": str(uuid.uuid4()),
        },
    )
    if answer.status >= 300:
        raise EnvironmentNotReady(f"{deployment} was not accepted", got=f"HTTP {answer.status} {answer.body}")
    return _run(answer.body, _flow_names(api))


def input_schema(api: PrefectApi, run: FlowRun) -> dict[str, Any]:
    """JSON schema of the form that a suspended run waits for. Raises GoRefused where it waits for none."""
    document = api.read(f"/flow_runs/{run.run_id}")
    keys = ((document["state"].get("state_details") or {}).get("run_input_keyset")) or {}
    schema = api.read(f"/flow_runs/{run.run_id}/input/{keys['schema']}") if keys else None
    if not isinstance(schema, dict):
        raise GoRefused(f"run {run.name} waits for no form", got=run.state_name, need="Suspended with a form")
    return schema


def resume_run(api: PrefectApi, run: FlowRun, form: Mapping[str, Any]) -> None:
    """Answer a suspended run. Raises GoRefused with the server's reason where it does not accept."""
    answer = api.request("POST", f"/flow_runs/{run.run_id}/resume", {"run_input": dict(form)})
    body = answer.body if isinstance(answer.body, dict) else {}
    if answer.status == 201 or body.get("status") == "ACCEPT":
        return
    reason = (body.get("details") or {}).get("reason") or f"HTTP {answer.status}"
    raise GoRefused(f"the server did not take the answer to {run.name}", got=reason)


def live_line(api: PrefectApi, run_id: str) -> str | None:
    """The newest progress line of a phase run, None before there is one."""
    found = api.find(
        "/artifacts/filter",
        {
            "artifacts": {"flow_run_id": {"any_": [run_id]}, "type": {"any_": ["progress"]}},
            "sort": "UPDATED_DESC",
            "limit": 1,
        },
    )
    return found[0]["description"] if found else None


def run_of_go(api: PrefectApi, go_sha256: str) -> FlowRun | None:
    """The phase run of a dispatched GO, None before there is one."""
    key = f"phase-{go_sha256}"
    found = api.find("/flow_runs/filter", {"flow_runs": {"idempotency_key": {"any_": [key]}}, "limit": 1})
    return _run(found[0], _flow_names(api)) if found else None


def set_state(api: PrefectApi, run: FlowRun, state_type: str, name: str, message: str) -> None:
    """Set the final state of a run that has no process any more."""
    state = {"type": state_type, "name": name, "message": message}
    api.request("POST", f"/flow_runs/{run.run_id}/set_state", {"state": state, "force": True})
