"""A reviewer's answer that arrives while workers poll: none is lost to a locked database.

Prefect 3.9.1's own resume route answers about every tenth with HTTP 503 there; see flows/server.py.
"""

import json
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from typing import Any

import pytest
from support.prefect_server import PrefectServer

from fitladder.prefect_api.client import PrefectApi

pytestmark = pytest.mark.server
RUNS = 100
PAUSE_S = 0.13  # between two answers: no multiple of the workers' second, so that they meet at every distance
SCHEMA = {
    "type": "object",
    "properties": {"reviewer": {"type": "string"}},
    "required": ["reviewer"],
    "additionalProperties": False,
}


def _made(api: PrefectApi, path: str, body: dict[str, Any]) -> str:
    answer = api.request("POST", path, body)
    assert answer.status in (200, 201), (path, answer)
    return str(answer.body["id"])


def _suspended(api: PrefectApi, deployment: str) -> str:
    """A run as `suspend_flow_run(wait_for_input=...)` leaves it: paused, without a process, with its form."""
    keyset = {name: f"review-{name}" for name in ("schema", "response", "description")}
    details = {"pause_reschedule": True, "pause_key": "review", "run_input_keyset": keyset}
    state = {"type": "PAUSED", "name": "Suspended", "state_details": details}
    run = _made(api, f"/deployments/{deployment}/create_flow_run", {"state": state})
    stored = {"key": keyset["schema"], "value": json.dumps(SCHEMA)}
    assert api.request("POST", f"/flow_runs/{run}/input", stored).status == 201
    return run


def _resume_once(api: PrefectApi, run: str) -> tuple[int, str]:
    """HTTP status and Prefect's word for it, as a browser gets them: nothing is tried again."""
    call = urllib.request.Request(
        f"{api.url}/flow_runs/{run}/resume",
        data=json.dumps({"run_input": {"reviewer": "jan"}}).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(call, timeout=60) as answer:
            return answer.status, json.loads(answer.read())["status"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.reason


def test_every_answer_is_taken_while_workers_poll_each_second(prefect_server: PrefectServer) -> None:
    prefect = prefect_server
    prefect.need("cpu", "cpu 2", "gpu", "gpu 2")
    api = prefect.api
    name = f"resumed-{uuid.uuid4().hex[:8]}"
    flow = _made(api, "/flows/", {"name": name})
    _made(api, "/work_pools/", {"name": name, "type": "process"})  # no worker serves it: nothing shall run
    deployment = _made(api, "/deployments/", {"name": name, "flow_id": flow, "work_pool_name": name})
    try:
        runs = [_suspended(api, deployment) for _ in range(RUNS)]
        answers: Counter[tuple[int, str]] = Counter()
        for run in runs:
            answers[_resume_once(api, run)] += 1
            time.sleep(PAUSE_S)
        assert answers == {(201, "ACCEPT"): RUNS}
        assert api.read(f"/flow_runs/{runs[-1]}/input/review-response") == {"reviewer": "jan"}
    finally:
        for path in (f"/flows/{flow}", f"/work_pools/{name}"):
            assert api.request("DELETE", path).status == 204
