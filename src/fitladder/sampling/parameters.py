"""Sampling parameters as the engine is told them: every one, those that are off included.

Plain data, so that a preflight can record exactly what is sent. It knows no engine's classes.
"""

from collections.abc import Sequence
from typing import Any

from fitladder.records.settings import Sampling, Thinking

__all__ = ["explicit_parameters", "sampling_parameters"]


def sampling_parameters(sampling: Sampling, thinking: Thinking) -> dict[str, Any]:
    """`explicit_parameters` of an experiment: the model's own EOS ids stop a sample."""
    return explicit_parameters(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        stop_token_ids=thinking.model_eos_token_ids,
    )


def explicit_parameters(
    *, temperature: float, top_p: float, top_k: int, stop_token_ids: Sequence[int]
) -> dict[str, Any]:
    """Keyword arguments of vLLM's `SamplingParams` that are the same for every request.

    Each request adds its own `seed` and `max_tokens`. The tokenizer's EOS is ignored; no text is made, so no
    stop string could match either.
    """
    return {
        "n": 1,
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "min_tokens": 0,
        "ignore_eos": True,
        "stop": None,
        "stop_token_ids": list(stop_token_ids),
        "detokenize": False,
        "logprobs": None,
        "prompt_logprobs": None,
    }
