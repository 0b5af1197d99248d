"""Work pools, a work queue for each host and a concurrency limit for each device, made on a server.

Every function may be repeated. A host has one queue, of one name, in every pool: launches, phases and lineage
of an experiment all run where its root is. A queue lets one phase run for each device of its host, a pool as
many as its queues.
"""

import json
import re
import socket
from pathlib import Path
from typing import Any

from fitladder.errors import EnvironmentNotReady, UsageError
from fitladder.prefect_api.client import PrefectApi
from fitladder.records.work_queue import DEFAULT_QUEUE
from fitladder.workspace import DEFAULT_DEVICE, slot_of

__all__ = [
    "CPU_POOL",
    "DEFAULT_SLOT",
    "GPU_POOL",
    "check_queue_name",
    "claim_queue",
    "ensure_device",
    "ensure_launches",
    "ensure_window",
    "queue_names",
    "release_slot",
]

CPU_POOL = "fitladder-cpu"
GPU_POOL = "fitladder-gpu"
DEFAULT_SLOT = slot_of(DEFAULT_QUEUE, DEFAULT_DEVICE)
WINDOW = "scheduled-phase"
COPIED = (
    "flow_id", "entrypoint", "path", "pull_steps", "description", "tags", "parameters", "job_variables",
    "parameter_openapi_schema", "enforce_parameter_schema",
)  # fmt: skip


def check_queue_name(name: str) -> None:
    """Raise UsageError unless a queue can be part of the names that are made of it."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", name):
        raise UsageError(
            "the name of a work queue",
            got=ascii(name)[:60],
            need="a-z, 0-9 and -, at most 40, such as gpuhost",
        )


def ensure_launches(api: PrefectApi, queue: str = DEFAULT_QUEUE, pool: str = CPU_POOL) -> None:
    """Make the pool of launches and lineage, without a limit, and this host's queue in it."""
    _ensure_pool(api, pool, None)
    if queue not in queue_names(api, pool):
        _change(api, "POST", f"/work_pools/{pool}/queues", {"name": queue})


def ensure_device(
    api: PrefectApi, queue: str = DEFAULT_QUEUE, device: str = DEFAULT_DEVICE, pool: str = GPU_POOL
) -> None:
    """Make the pool of phases, this host's queue in it and the device's limit of one engine at a time.

    A limit that somebody raised stays; a further device of the host raises it by one.
    """
    _ensure_pool(api, pool, 1)
    here, slot = f"/work_pools/{pool}/queues", slot_of(queue, device)
    found = api.read(f"{here}/{queue}")
    is_new_device = api.read(f"/v2/concurrency_limits/{slot}") is None
    if is_new_device:
        _change(api, "POST", "/v2/concurrency_limits/", {"name": slot, "limit": 1})
    if found is None:
        _change(api, "POST", here, {"name": queue, "concurrency_limit": 1})
    elif found["concurrency_limit"] is None:
        _change(api, "PATCH", f"{here}/{queue}", {"concurrency_limit": 1})
    elif is_new_device:
        _change(api, "PATCH", f"{here}/{queue}", {"concurrency_limit": found["concurrency_limit"] + 1})
    together = sum(one["concurrency_limit"] or 0 for one in _queues(api, pool))
    if api.read(f"/work_pools/{pool}")["concurrency_limit"] != together:
        _change(api, "PATCH", f"/work_pools/{pool}", {"concurrency_limit": together})


def ensure_window(api: PrefectApi, queue: str) -> None:
    """Deploy `scheduled-phase` for the queue of one more host. Raises EnvironmentNotReady: not deployed."""
    if queue == DEFAULT_QUEUE:
        return
    found = api.read(f"/deployments/name/{WINDOW}/{WINDOW}")
    if found is None:
        raise EnvironmentNotReady(
            f"{WINDOW} is not deployed at {api.url}", do="run `prefect --no-prompt deploy --all`"
        )
    schedules = [{"schedule": one["schedule"], "active": one["active"]} for one in found["schedules"]]
    own = {"name": f"{WINDOW}-{queue}", "work_pool_name": found["work_pool_name"], "work_queue_name": queue}
    copied = {name: found[name] for name in COPIED}
    _change(api, "POST", "/deployments/", {**copied, **own, "schedules": schedules})


def claim_queue(api: PrefectApi, queue: str, folder: Path) -> None:
    """Bind a queue to one checkout of one host, so that no other runs what was approved in it.

    Raises EnvironmentNotReady where another has it; the server's unique variable names decide a race.
    """
    name = f"fitladder_queue_{queue.replace('-', '_')}"
    mine = {"host": socket.gethostname(), "checkout": str(folder)}
    api.request("POST", "/variables/", {"name": name, "value": json.dumps(mine)})
    found = api.read(f"/variables/name/{name}")
    holder = json.loads(found["value"]) if found else None
    if holder != mine:
        raise EnvironmentNotReady(
            f"work queue {queue} of {api.url} belongs to another checkout",
            got=_place(mine),
            need=_place(holder) if holder else "a server that remembers it",
            do=f"give this one its own: `--queue NAME`; or, where the other is gone for good, "
            f"`prefect variable unset {name}`",
        )


def _place(one: dict[str, str]) -> str:
    return f"{one.get('host')}:{one.get('checkout')}"


def queue_names(api: PrefectApi, pool: str) -> tuple[str, ...]:
    """The queues of a pool, which are its hosts; empty where there is no such pool."""
    return tuple(one["name"] for one in _queues(api, pool))


def _queues(api: PrefectApi, pool: str) -> list[dict[str, Any]]:
    return api.find(f"/work_pools/{pool}/queues/filter", {"limit": 200}) or []


def _ensure_pool(api: PrefectApi, name: str, concurrency_limit: int | None) -> None:
    found = api.read(f"/work_pools/{name}")
    if found is None:
        body = {"name": name, "type": "process", "concurrency_limit": concurrency_limit}
        _change(api, "POST", "/work_pools/", body)
    elif found["type"] != "process":
        raise EnvironmentNotReady(f"work pool {name}", got=found["type"], need="type process")


def _change(api: PrefectApi, method: str, path: str, body: dict[str, Any]) -> None:
    """Send one change; 409 says that somebody else made it just now."""
    answer = api.request(method, path, body)
    if answer.status >= 300 and answer.status != 409:
        raise EnvironmentNotReady(
            f"the server did not take {path}", got=f"HTTP {answer.status} {json.dumps(answer.body)[:300]}"
        )


def release_slot(api: PrefectApi, name: str) -> None:
    """Free a device's limit of a dead holder, on a server whose workers are all known to be gone."""
    body: dict[str, Any] = {"active_slots": 0}
    api.request("PATCH", f"/v2/concurrency_limits/{name}", body)
