"""Frozen protocol of a registered experiment as rows of one table."""

from fitladder.capacity.kv_rule import KvRule
from fitladder.records.experiment import Experiment
from fitladder.report.words import NOT_RECORDED, count, percent, sizes

__all__ = ["model_identity", "protocol_rows"]

KV_RULE_WORDS: dict[KvRule, str] = {
    "token": "the token rule",
    "both": "the token rule and the block-exact rule",
    "block": "the block-exact rule; the token figure is recorded",
}


def model_identity(experiment: Experiment) -> str:
    """The model and the digest or commit that names its weights."""
    model = experiment.model
    named = f"revision {model.revision}" if model.revision else f"folder SHA-256 {model.folder_sha256}"
    return f"{model.name}, {named}"


def protocol_rows(experiment: Experiment) -> tuple[tuple[str, str], ...]:
    """(setting, value) rows, in the order in which a reader asks for them."""
    engine, sampling, limits, loop = (
        experiment.engine,
        experiment.sampling,
        experiment.thresholds,
        experiment.loop_rule,
    )
    rows = [
        ("Model", model_identity(experiment)),
        ("Precision, tensor parallel", f"{experiment.model.dtype}, TP {engine.tensor_parallel_size}"),
        ("Engine", f"{engine.backend} {engine.vllm_version or f'(version {NOT_RECORDED} at the time)'}"),
        ("Context limit (max_model_len)", f"{count(engine.max_model_len_tokens)} tokens"),
        ("Batch limit (max_num_batched_tokens)", f"{count(engine.max_num_batched_tokens)} tokens"),
        ("Engine memory", _memory(experiment)),
        ("Engine switches", _switches(experiment)),
        ("CUDA graphs", f"capture {engine.capture}"),
        ("Rungs", "; ".join(_rung(experiment, index) for index in range(len(experiment.rungs)))),
        ("Answer limit", f"{count(sampling.answer_max_tokens)} tokens"),
        ("Longest prompt", f"{count(experiment.longest_prompt_tokens)} tokens"),
        (
            "Records and samples",
            f"{experiment.records_per_arm} records an arm; probe K={experiment.probe_k}, "
            f"base and designed K={experiment.matrix_k}",
        ),
        ("Sampling", f"temperature {sampling.temperature}, top-p {sampling.top_p}, top-k {sampling.top_k}"),
        ("Run seed", f"{sampling.run_seed}, engine seed {engine.engine_seed}"),
        ("KV fit decided by", KV_RULE_WORDS[experiment.kv_rule]),
        (
            "Periodic loop",
            f"the last {count(loop.tail_tokens)} thinking tokens repeat at some period of 1 to "
            f"{count(loop.max_period_tokens)} tokens, match rate at least "
            f"{percent(loop.min_match_rate.value, 0)}; claimed only from a budget of "
            f"{count(loop.min_budget_tokens)} tokens on",
        ),
        (
            "Adequate when",
            f"unresolved below {percent(limits.unresolved_rate_below.value, 0)}, answer limit below "
            f"{percent(limits.answer_limit_rate_below.value, 0)}, loops at most "
            f"{percent(limits.loop_rate_at_most.value, 0)}",
        ),
        ("End of sequence inside thinking", experiment.thinking.eos_inside_thinking.replace("_", " ")),
        ("Review", experiment.review),
        ("Predecessor", experiment.predecessor or "none"),
    ]
    return tuple(rows)


def _memory(experiment: Experiment) -> str:
    engine = experiment.engine
    parts = []
    if engine.gpu_memory_utilization is not None:
        parts.append(f"gpu_memory_utilization {engine.gpu_memory_utilization}")
    if engine.kv_cache_memory_bytes is not None:
        parts.append(f"KV cache {count(engine.kv_cache_memory_bytes)} bytes")
    if engine.num_gpu_blocks_override is not None:
        parts.append(f"pool set to {count(engine.num_gpu_blocks_override)} blocks")
    return ", ".join(parts) or "engine default"


def _switches(experiment: Experiment) -> str:
    engine = experiment.engine
    words = {True: "on", False: "off"}
    return (
        f"eager {words[engine.enforce_eager]}, prefix caching {words[engine.enable_prefix_caching]}, "
        f"async scheduling {words[engine.async_scheduling]}, admission {engine.admission.replace('_', ' ')}"
    )


def _rung(experiment: Experiment, index: int) -> str:
    rung = experiment.rungs[index]
    graphs = f", capture {sizes(rung.capture_sizes)}" if rung.capture_sizes else ""
    return f"budget {count(rung.thinking_budget_tokens)} at max_num_seqs {rung.max_num_seqs}{graphs}"
