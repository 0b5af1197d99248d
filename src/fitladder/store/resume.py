"""Resuming an interrupted phase: the identity that another attempt must share.

A phase is resumed only under the same identity, and only from its first row: every attempt has a folder and a
GO of its own, and no row that exists is ever reused. What cannot change a row (where files lie, how
much is logged, when it was, who allowed it) is not part of the identity.
"""

from typing import Any

from fitladder.errors import BindingChanged
from fitladder.records.preflight import Preflight

__all__ = ["bundle_identity", "check_resumable"]

_ENGINE = (
    "engine",
    "engine_version",
    "device",
    "dtype",
    "capture_requested",
    "capture_resolved",
    "max_num_seqs",
)


def bundle_identity(preflight: Preflight) -> dict[str, Any]:
    """Dotted field -> plain value, of everything that two runs of one bundle must share."""
    identity: dict[str, Any] = {
        "experiment_id": preflight.key.experiment_id,
        "thinking_budget_tokens": preflight.key.thinking_budget_tokens,
        "phase": preflight.key.phase,
        "k": preflight.k,
        "seeds_sha256": preflight.seeds_sha256,
        "binding.generation_sha256": preflight.binding.generation_sha256,
        "runtime.engine_lock_sha256": preflight.runtime.engine_lock_sha256,
    }
    for part, record in (("model", preflight.model), ("sampling", preflight.sampling)):
        identity |= {f"{part}.{name}": value for name, value in record.model_dump(mode="json").items()}
    identity |= {f"engine.{name}": getattr(preflight.engine, name) for name in _ENGINE}
    for number, prompt in enumerate(preflight.prompts):
        identity[f"prompts[{number}].record_id"] = prompt.record_id
        identity[f"prompts[{number}].rendered_sha256"] = prompt.rendered_sha256
        identity[f"prompts[{number}].prompt_tokens"] = prompt.prompt_tokens
    return identity


def check_resumable(evidence: Preflight, now: Preflight) -> None:
    """`now` may follow the interrupted `evidence`. Raises BindingChanged with field, old and new value."""
    old, new = bundle_identity(evidence), bundle_identity(now)
    for field in [*old, *(name for name in new if name not in old)]:
        if old.get(field) != new.get(field):
            raise BindingChanged(
                f"{evidence.key} cannot be resumed: {field} changed",
                got=new.get(field, "nothing"),
                need=old.get(field, "nothing"),
                do="what was begun stays as it is; another setting is another experiment or rung",
            )
