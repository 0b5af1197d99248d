"""What must a server know before anything can run? Work pools, and one slot a device.

Idempotent: what stands already is left as it is, but for a pool's limit, which is part of the design.
"""

from typing import Any

from fitladder.errors import EnvironmentNotReady
from fitladder.orchestrator.rest import PrefectApi

__all__ = ["CPU_POOL", "DEFAULT_SLOT", "GPU_POOL", "empty_slot", "ensure_pool", "ensure_slot"]

CPU_POOL = "fitladder-cpu"
GPU_POOL = "fitladder-gpu"
DEFAULT_SLOT = "gpu-0"


def ensure_pool(api: PrefectApi, name: str, concurrency_limit: int | None) -> None:
    """A process work pool of that name and limit; None for no limit."""
    found = api.read(f"/work_pools/{name}")
    if found is None:
        body = {"name": name, "type": "process", "concurrency_limit": concurrency_limit}
        answer = api.request("POST", "/work_pools/", body)
        if answer.status not in (201, 409):
            raise EnvironmentNotReady(f"work pool {name} was not created", got=answer.body)
    elif found["type"] != "process":
        raise EnvironmentNotReady(f"work pool {name}", got=found["type"], need="type process")
    elif found["concurrency_limit"] != concurrency_limit:
        api.request("PATCH", f"/work_pools/{name}", {"concurrency_limit": concurrency_limit})


def ensure_slot(api: PrefectApi, name: str) -> None:
    """The global concurrency limit of one device: one engine at a time. A missing one makes phases fail."""
    if api.read(f"/v2/concurrency_limits/{name}") is None:
        answer = api.request("POST", "/v2/concurrency_limits/", {"name": name, "limit": 1})
        if answer.status not in (201, 409):
            raise EnvironmentNotReady(f"slot {name} was not created", got=answer.body)


def empty_slot(api: PrefectApi, name: str) -> None:
    """Forget a dead holder. Only for a server whose every worker is known to be gone."""
    body: dict[str, Any] = {"active_slots": 0}
    api.request("PATCH", f"/v2/concurrency_limits/{name}", body)
