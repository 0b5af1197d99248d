"""The frozen prompts pass; a changed, missing, repeated or reordered one is refused by name."""

from dataclasses import replace

import pytest

from fitladder.errors import GateRefused
from fitladder.gates.prompt_identity import PromptFacts, check_prompt_identity


def test_prompt_identity_names_prompt_and_field(prompts: list[PromptFacts]) -> None:
    assert check_prompt_identity(prompts, prompts, 12).numbers["prompts"] == 12
    longer = [*prompts[:3], replace(prompts[3], prompt_tokens=974), *prompts[4:]]
    with pytest.raises(GateRefused, match=r"prompt r-003: prompt_tokens drifted: got 974, need 973"):
        check_prompt_identity(longer, prompts, 12)
    other = [*prompts[:3], replace(prompts[3], rendered_sha256="f" * 64), *prompts[4:]]
    with pytest.raises(GateRefused, match="prompt r-003: rendered_sha256 drifted"):
        check_prompt_identity(other, prompts, 12)
    for odd in (prompts[:11], prompts[::-1], [*prompts, replace(prompts[0], record_id="r-012")]):
        with pytest.raises(GateRefused, match="not the frozen ones"):
            check_prompt_identity(odd, prompts, 12)
    with pytest.raises(GateRefused, match="twice: got r-003"):
        check_prompt_identity([*prompts[:11], prompts[3]], prompts, 12)
    with pytest.raises(GateRefused, match="not the frozen ones: got r-x, need r-011"):
        check_prompt_identity([*prompts[:11], replace(prompts[11], record_id="r-x")], prompts, 12)
    with pytest.raises(GateRefused, match="got 11 prompts, need 12"):
        check_prompt_identity(prompts[:11], prompts[:11], 12)
