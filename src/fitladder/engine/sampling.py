"""Which sampling parameters is the engine told? Every one, the ones that are off included.

Plain data, so that a preflight can record exactly what is sent. It knows no engine's classes.
"""

from typing import Any

from fitladder.protocol.settings import Sampling, Thinking

__all__ = ["sampling_parameters"]


def sampling_parameters(sampling: Sampling, thinking: Thinking) -> dict[str, Any]:
    """Keyword arguments of vLLM's `SamplingParams` that are the same for every request.

    Each request adds its own `seed` and `max_tokens`. The tokenizer's EOS is ignored; the model's own ids
    stop a sample. No text is made, so no stop string could match either.
    """
    return {
        "n": 1,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "min_tokens": 0,
        "ignore_eos": True,
        "stop": None,
        "stop_token_ids": list(thinking.model_eos_token_ids),
        "detokenize": False,
        "logprobs": None,
        "prompt_logprobs": None,
    }
