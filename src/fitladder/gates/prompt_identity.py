"""Gate `prompt_identity`: the phase's prompts are the frozen ones, in order, by SHA-256 and token count.

Which token id differs is found before the engine is built (prompts/manifest.py); this gate sees no text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fitladder.errors import GateRefused
from fitladder.records.gate import GateRecord

__all__ = ["PromptFacts", "check_prompt_identity"]

FREEZE = "restore the registered input; a changed prompt is a new experiment"


@dataclass(frozen=True)
class PromptFacts:
    """One prompt as rendered now, or as frozen in the manifest; the digest is of its UTF-8 text."""

    record_id: str
    rendered_sha256: str
    prompt_tokens: int


def check_prompt_identity(
    prompts: Sequence[PromptFacts], frozen: Sequence[PromptFacts], records_per_arm: int
) -> GateRecord:
    """Refuse prompts that are not the frozen ones: each record once, in order, with equal digest and length.

    Args:
        prompts: the phase's arm as rendered now.
        frozen: the same arm of the manifest.
        records_per_arm: the registered number of records.

    Returns the record with the number of prompts and their tokens. Raises GateRefused naming the first prompt
    and field that differ.
    """
    have, need = [prompt.record_id for prompt in prompts], [prompt.record_id for prompt in frozen]
    if len(set(have)) != len(have):
        twice = next(name for name in have if have.count(name) > 1)
        raise GateRefused("a prompt stands twice", got=twice, need="each record once")
    if len(need) != records_per_arm:
        raise GateRefused("the manifest's arm", got=f"{len(need)} prompts", need=records_per_arm, do=FREEZE)
    if have != need:
        odd = next((pair for pair in zip(have, need, strict=False) if pair[0] != pair[1]), None)
        got, want = odd or (f"{len(have)} prompts", f"{len(need)} prompts")
        raise GateRefused("the prompts are not the frozen ones", got=got, need=want, do=FREEZE)
    for prompt, entry in zip(prompts, frozen, strict=True):
        for field in ("prompt_tokens", "rendered_sha256"):
            if getattr(prompt, field) != getattr(entry, field):
                raise GateRefused(
                    f"prompt {prompt.record_id}: {field} drifted",
                    got=getattr(prompt, field),
                    need=getattr(entry, field),
                    do=FREEZE,
                )
    return GateRecord(
        name="prompt_identity",
        numbers={"prompts": len(prompts), "prompt_tokens": sum(prompt.prompt_tokens for prompt in prompts)},
    )
