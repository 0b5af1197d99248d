"""Keyword arguments of vLLM's `LLM`, and the request, for one rung of an experiment.

Every argument is explicit and comes from the registration. Builds no engine and imports none.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from fitladder.engine.request import EngineRequest, RequestRecord
from fitladder.errors import RegistrationError
from fitladder.records.bundle_key import BundleKey
from fitladder.records.experiment import Experiment, Phase
from fitladder.records.settings import Engine, Rung
from fitladder.registry.binding import generation_code_sha256

__all__ = ["build_request", "llm_arguments"]

LoadFormat = Literal["auto", "dummy"]


def llm_arguments(
    experiment: Experiment,
    rung: Rung,
    *,
    model: str,
    load_format: LoadFormat = "auto",
    num_gpu_blocks_override: int | None = None,
) -> dict[str, Any]:
    """Keyword arguments of `vllm.LLM` for this rung.

    Args:
        model: folder of the model, or its hub name; the registered revision goes with the hub name only.
        load_format: `dummy` for random weights (rehearsals).
        num_gpu_blocks_override: blocks of the pool in place of the registered ones (rehearsals).

    Raises RegistrationError where `engine.args` repeats an argument that another field sets, or where vLLM on
    a CPU would prefill a seeded prompt in chunks.
    """
    engine = experiment.engine
    share = engine.gpu_memory_utilization
    _check_cpu_prefill(engine)
    arguments: dict[str, Any] = {
        "async_scheduling": engine.async_scheduling,
        "disable_log_stats": False,  # preemptions are counted only where statistics are kept
        "dtype": experiment.model.dtype,
        "enable_prefix_caching": engine.enable_prefix_caching,
        "enforce_eager": engine.enforce_eager,
        "generation_config": "vllm",  # no sampling default out of the model folder
        "load_format": load_format,
        "max_model_len": engine.max_model_len_tokens,
        "max_num_batched_tokens": engine.max_num_batched_tokens,
        "max_num_seqs": rung.max_num_seqs,
        "model": model,
        "seed": engine.engine_seed,
        "skip_tokenizer_init": True,  # token ids in and out: no tokenizer takes part
        "tensor_parallel_size": engine.tensor_parallel_size,
    }
    optional: dict[str, Any] = {
        "gpu_memory_utilization": None if share is None else float(share.value),
        "kv_cache_memory_bytes": engine.kv_cache_memory_bytes,
        "num_gpu_blocks_override": num_gpu_blocks_override or engine.num_gpu_blocks_override,
        "revision": experiment.model.revision if model == experiment.model.name else None,
        "cudagraph_capture_sizes": None if rung.capture_sizes is None else list(rung.capture_sizes),
        "max_cudagraph_capture_size": _capture_maximum(engine, rung),
    }
    arguments |= {name: value for name, value in optional.items() if value is not None}
    taken = sorted(set(engine.args) & (set(arguments) - {"generation_config", "skip_tokenizer_init"}))
    if taken:
        raise RegistrationError(
            f"engine.args.{taken[0]} is set elsewhere",
            got=repr(engine.args[taken[0]]),
            need="one place for a value",
        )
    return arguments | engine.args


def _capture_maximum(engine: Engine, rung: Rung) -> int | None:
    if engine.capture == "none":
        return None
    return rung.max_num_seqs if rung.capture_sizes is None else rung.capture_sizes[-1]


def _check_cpu_prefill(engine: Engine) -> None:
    """Refuse chunked prefill on a CPU: vLLM resets the offset of a seeded generator, and a CPU's has none."""
    if engine.backend == "vllm-cpu" and engine.args.get("enable_chunked_prefill") is not False:
        raise RegistrationError(
            "engine.args.enable_chunked_prefill",
            got=repr(engine.args.get("enable_chunked_prefill")),
            need="false: on a CPU a seeded prompt must be prefilled whole",
        )


def build_request(
    experiment: Experiment,
    rung: Rung,
    phase: Phase,
    *,
    prompts: Mapping[str, Sequence[int]],
    model: str,
    samples_path: Path,
    engine_lock_path: Path | None,
    load_format: LoadFormat = "auto",
    num_gpu_blocks_override: int | None = None,
    progress_interval_s: float = 1.0,
) -> EngineRequest:
    """Request of one phase at one rung.

    Args:
        prompts: token ids by record id, in sampling order.
        samples_path: where the child writes the samples.
        engine_lock_path: lock file of the engine environment; None where there is none.
        progress_interval_s: seconds between two `progress` events.

    The other arguments, and the errors, are those of `llm_arguments`.
    """
    return EngineRequest(
        key=BundleKey(
            experiment_id=experiment.experiment_id,
            thinking_budget_tokens=rung.thinking_budget_tokens,
            phase=phase,
        ),
        backend=experiment.engine.backend,
        engine_args=llm_arguments(
            experiment,
            rung,
            model=model,
            load_format=load_format,
            num_gpu_blocks_override=num_gpu_blocks_override,
        ),
        environment=experiment.engine.environment,
        records=tuple(
            RequestRecord(record_id=name, prompt_token_ids=tuple(ids)) for name, ids in prompts.items()
        ),
        k=experiment.k(phase),
        thinking_budget_tokens=rung.thinking_budget_tokens,
        thinking=experiment.thinking,
        sampling=experiment.sampling,
        admission=experiment.engine.admission,
        samples_path=str(samples_path),
        engine_lock_path=None if engine_lock_path is None else str(engine_lock_path),
        generation_code_sha256=generation_code_sha256(),
        progress_interval_s=progress_interval_s,
    )
