"""Gate `live_settings`: every setting of the live engine that can change a result is the registered one.

Compares what the engine reports about itself, not the arguments that it was built with.
"""

from fitladder.errors import GateRefused
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment
from fitladder.records.gate import GateRecord, Number
from fitladder.records.settings import Rung

__all__ = ["check_live_settings"]

DEVICE_OF_BACKEND = {"vllm-cuda": "cuda", "vllm-cpu": "cpu"}


def check_live_settings(experiment: Experiment, rung: Rung, facts: EngineFacts) -> GateRecord:
    """Refuse an engine with another length, width, batch, seed, dtype, caching, scheduling or device.

    vLLM's version and the number of blocks are compared where they are registered.

    Args:
        rung: gives max_num_seqs.
        facts: what the built engine reported.

    Returns the record with the live values. Raises GateRefused naming the first setting that differs, with
    both values.
    """
    engine = experiment.engine
    pairs: dict[str, tuple[Number, Number]] = {
        "max_model_len_tokens": (facts.max_model_len_tokens, engine.max_model_len_tokens),
        "max_num_seqs": (facts.max_num_seqs, rung.max_num_seqs),
        "max_num_batched_tokens": (facts.max_num_batched_tokens, engine.max_num_batched_tokens),
        "engine_seed": (facts.engine_seed, engine.engine_seed),
        "dtype": (facts.dtype, experiment.model.dtype),
        "enable_prefix_caching": (facts.enable_prefix_caching, engine.enable_prefix_caching),
        "async_scheduling": (facts.async_scheduling, engine.async_scheduling),
        "enforce_eager": (facts.enforce_eager, engine.enforce_eager),
        "device": (facts.device, DEVICE_OF_BACKEND[engine.backend]),
    }
    if engine.vllm_version is not None:
        pairs["engine_version"] = (facts.engine_version, engine.vllm_version)
    if engine.num_gpu_blocks_override is not None:
        pairs["num_blocks"] = (facts.num_blocks, engine.num_gpu_blocks_override)
    for name, (live, registered) in pairs.items():
        if live != registered:
            raise GateRefused(
                f"live engine: {name} is not the registered one",
                got=live,
                need=registered,
                do="build the engine from the registered section, or register another experiment",
            )
    return GateRecord(name="live_settings", numbers={name: live for name, (live, _) in pairs.items()})
