"""Which environment variables does an engine process get, and which of them are recorded?

Registered ones, ours, and the inherited ones less every VLLM_* and PYTHON* that nobody registered: a stray
VLLM_CPU_KVCACHE_SPACE, for one, silently overrides the registered cache. Pure.
"""

from collections.abc import Mapping

__all__ = ["child_environment", "recorded_environment"]

OURS = {  # how our runner uses any vLLM
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONUNBUFFERED": "1",
}
KEPT = ("VLLM_CACHE_ROOT", "PYTHONPATH")  # where compiled kernels and packages lie
INHERITED = (  # they can matter; what is loaded from elsewhere is at least on record
    "CUDA_VISIBLE_DEVICES",
    "LD_PRELOAD",
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "PYTHONPATH",
)
DROPPED = ("VLLM_", "PYTHON")


def child_environment(inherited: Mapping[str, str], registered: Mapping[str, str]) -> dict[str, str]:
    """Environment of an engine process; registered values win."""
    kept = {name: value for name, value in inherited.items() if not name.startswith(DROPPED) or name in KEPT}
    return kept | OURS | dict(registered)


def recorded_environment(environment: Mapping[str, str], registered: Mapping[str, str]) -> dict[str, str]:
    """What the process saw of the registered variables, ours and those that can matter, by name.

    vLLM sets variables of its own at import, some of them random; they are its state, not its surroundings.
    """
    names = {*registered, *OURS, *INHERITED}
    return {name: environment[name] for name in sorted(names) if name in environment}
