"""Environment variables of an engine process, and which of them are recorded.

The process gets the registered variables, those of REQUIRED, and the inherited ones less every VLLM_* and
PYTHON*: a stray VLLM_CPU_KVCACHE_SPACE, for one, silently overrides the registered KV cache. Pure.
"""

from collections.abc import Mapping

__all__ = ["child_environment", "recorded_environment"]

REQUIRED = {  # for any vLLM that runs in one process, offline, with unbuffered logs
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONUNBUFFERED": "1",
}
KEPT = ("VLLM_CACHE_ROOT", "PYTHONPATH")  # of DROPPED: where compiled kernels and packages lie
INHERITED = (  # recorded where set, since they can change speed or what is loaded
    "CUDA_VISIBLE_DEVICES",
    "LD_PRELOAD",
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "PYTHONPATH",
)
DROPPED = ("VLLM_", "PYTHON")


def child_environment(inherited: Mapping[str, str], registered: Mapping[str, str]) -> dict[str, str]:
    """Environment of an engine process.

    Args:
        inherited: the environment that the parent runs in.
        registered: the experiment's variables, which win over all others.
    """
    kept = {name: value for name, value in inherited.items() if not name.startswith(DROPPED) or name in KEPT}
    return kept | REQUIRED | dict(registered)


def recorded_environment(environment: Mapping[str, str], registered: Mapping[str, str]) -> dict[str, str]:
    """The recorded part of a process's environment: registered, REQUIRED and INHERITED variables, by name.

    Others are left out: vLLM sets some at import, with random values.
    """
    names = {*registered, *REQUIRED, *INHERITED}
    return {name: environment[name] for name in sorted(names) if name in environment}
