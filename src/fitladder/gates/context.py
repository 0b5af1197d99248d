"""Gate `context`: the longest prompt with its whole budget, the close and the answer fits max_model_len.

No prompt is truncated and no budget reduced: what does not fit is refused.
"""

from collections.abc import Sequence

from fitladder.errors import GateRefused
from fitladder.gates.prompt_identity import PromptFacts
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment
from fitladder.records.gate import GateRecord
from fitladder.records.settings import Rung

__all__ = ["check_context", "longest_prompt"]


def longest_prompt(prompts: Sequence[PromptFacts]) -> PromptFacts:
    """The prompt of most tokens, the first on a tie. Raises GateRefused on no prompts, or on an empty one."""
    for prompt in prompts:
        if type(prompt.prompt_tokens) is not int or prompt.prompt_tokens < 1:
            raise GateRefused(
                f"prompt {prompt.record_id} has no length", got=repr(prompt.prompt_tokens), need="1 or more"
            )
    if not prompts:
        raise GateRefused("no prompt to check", got=0, need="the arm's prompts")
    return max(prompts, key=lambda prompt: prompt.prompt_tokens)


def check_context(
    experiment: Experiment, rung: Rung, facts: EngineFacts, prompts: Sequence[PromptFacts]
) -> GateRecord:
    """Refuse a phase whose longest prompt + budget + close + answer exceeds max_model_len.

    Args:
        facts: what the built engine reported; its max_model_len must be the registered one.
        prompts: the phase's arm, after tokenisation.

    Returns the record with each summand and the margin in tokens. Raises GateRefused naming the prompt and
    the overflow in tokens, also where the longest prompt is longer than the registered one, from which the
    approved plan was made.
    """
    registered = experiment.engine.max_model_len_tokens
    if facts.max_model_len_tokens != registered:
        raise GateRefused(
            "live max_model_len is not the registered one", got=facts.max_model_len_tokens, need=registered
        )
    longest = longest_prompt(prompts)
    close, answer = len(experiment.thinking.close_token_ids), experiment.sampling.answer_max_tokens
    total = experiment.sequence_tokens(rung, longest.prompt_tokens)
    if total > registered:
        raise GateRefused(
            f"prompt {longest.record_id} leaves no room: over by {total - registered} tokens",
            got=f"{longest.prompt_tokens} prompt + {rung.thinking_budget_tokens} thinking + {close} close "
            f"+ {answer} answer = {total}",
            need=f"at most {registered}",
            do="register a shorter prompt, a smaller budget or a longer max_model_len",
        )
    if longest.prompt_tokens > experiment.longest_prompt_tokens:
        raise GateRefused(
            f"prompt {longest.record_id} is longer than registered",
            got=longest.prompt_tokens,
            need=f"at most {experiment.longest_prompt_tokens}",
        )
    return GateRecord(
        name="context",
        numbers={
            "longest_prompt_id": longest.record_id,
            "longest_prompt_tokens": longest.prompt_tokens,
            "thinking_budget_tokens": rung.thinking_budget_tokens,
            "close_tokens": close,
            "answer_max_tokens": answer,
            "total_tokens": total,
            "max_model_len_tokens": registered,
            "margin_tokens": registered - total,
        },
    )
