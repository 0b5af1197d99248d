"""Comparison of engine and runtime within a rung, field by field, by what can change a result.

Not compared: what every start measures (pool size, load time: the gates judge those each time), where files
lie, and how much is logged. Widths and capture lists are compared: bundles of different width are not equal.
"""

from collections.abc import Mapping
from typing import Any

from fitladder.errors import BindingChanged
from fitladder.records.engine_facts import EngineFacts, RuntimeFacts

__all__ = ["check_no_drift", "rung_identity"]

MEASURED = frozenset({"kv_cache_size_tokens", "num_blocks", "max_concurrency", "load_s"})
NO_IDENTITY = frozenset(  # arguments and variables that name places or verbosity, or repeat a measured value
    {
        "model",  # a folder; the weights are identified by revision or digest, in the binding
        "model_config.model",
        "download_dir",
        "disable_log_stats",
        "log_level",
        "cache_config.num_gpu_blocks",
        "VLLM_CACHE_ROOT",
        "VLLM_LOGGING_LEVEL",
        "VLLM_CONFIGURE_LOGGING",
    }
)


def rung_identity(facts: EngineFacts, runtime: RuntimeFacts) -> dict[str, Any]:
    """Dotted field -> value, of everything that all phases of one rung must share."""
    plain = {
        "engine": facts.model_dump(mode="json", exclude=set(MEASURED)),
        "runtime": runtime.model_dump(mode="json"),
    }
    return dict(_leaves(plain, ""))


def _leaves(value: Any, where: str) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping) or not value:
        return [(where, value)]
    return [
        leaf
        for name, item in value.items()
        if name not in NO_IDENTITY
        for leaf in _leaves(item, f"{where}.{name}" if where else str(name))
    ]


def check_no_drift(recorded: Mapping[str, Any], live: Mapping[str, Any], *, where: str) -> None:
    """Two identities are one. Raises BindingChanged naming each field that differs, old and new.

    For phases of one rung (`rung_identity`), or for any two flat mappings of plain values.
    """
    moved = [
        name
        for name in (*recorded, *(name for name in live if name not in recorded))
        if name not in recorded or name not in live or recorded[name] != live[name]
    ]
    if moved:
        raise BindingChanged(
            f"{where}: {', '.join(moved)} changed",
            got="; ".join(f"{name} {live.get(name, 'nothing')!r}" for name in moved),
            need="; ".join(f"{name} {recorded.get(name, 'nothing')!r}" for name in moved),
            do="rows of two identities are never pooled; another setting is another experiment or rung",
        )
