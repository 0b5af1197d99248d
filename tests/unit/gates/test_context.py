"""A prompt that fills max_model_len exactly passes; one token more is refused with its overflow."""

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from fitladder.errors import GateRefused
from fitladder.gates.context import check_context
from fitladder.gates.prompt_identity import PromptFacts
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment
from fitladder.records.settings import Rung

Facts = Callable[..., EngineFacts]
Changed = Callable[..., Experiment]


@pytest.fixture
def roomy(exact: Experiment) -> Experiment:
    """A registration whose longest prompt is the longest that there could be."""
    return exact.model_copy(update={"longest_prompt_tokens": 15_870})


def test_no_room_left_over_is_enough(roomy: Experiment, facts: Facts, prompts: list[PromptFacts]) -> None:
    full = [*prompts, PromptFacts("r-long", "a" * 64, 15_870)]
    record = check_context(roomy, roomy.rungs[0], facts(), full)
    assert record.numbers["total_tokens"] == 65_536
    assert record.numbers["margin_tokens"] == 0
    assert record.numbers["longest_prompt_id"] == "r-long"


@pytest.mark.parametrize(("tokens", "overflow"), [(15_871, 1), (65_536, 49_666), (70_000, 54_130)])
def test_no_room_for_the_longest_prompt_is_refused_with_its_overflow(
    roomy: Experiment, facts: Facts, prompts: list[PromptFacts], tokens: int, overflow: int
) -> None:
    full = [*prompts, PromptFacts("r-long", "a" * 64, tokens)]
    with pytest.raises(GateRefused, match=rf"prompt r-long leaves no room: over by {overflow} tokens"):
        check_context(roomy, roomy.rungs[0], facts(), full)


def test_no_room_by_an_empty_budget_or_answer_cannot_be_registered(
    exact: Experiment, changed: Changed
) -> None:
    with pytest.raises(ValidationError, match="answer_max_tokens"):
        changed(exact, sampling__answer_max_tokens=0)
    with pytest.raises(ValidationError, match="thinking_budget_tokens"):
        Rung(thinking_budget_tokens=0, max_num_seqs=1, capture_sizes=(1,), deadline_s=1)


def test_a_prompt_longer_than_registered_or_empty_is_refused(
    exact: Experiment, facts: Facts, prompts: list[PromptFacts]
) -> None:
    with pytest.raises(GateRefused, match=r"r-x is longer than registered: got 1061, need at most 1060"):
        check_context(exact, exact.rungs[0], facts(), [*prompts, PromptFacts("r-x", "a" * 64, 1_061)])
    with pytest.raises(GateRefused, match="r-x has no length"):
        check_context(exact, exact.rungs[0], facts(), [*prompts, PromptFacts("r-x", "a" * 64, 0)])
    one = check_context(exact, exact.rungs[0], facts(), [PromptFacts("r-x", "a" * 64, 1)])
    assert one.numbers["longest_prompt_tokens"] == 1
    with pytest.raises(GateRefused, match="no prompt"):
        check_context(exact, exact.rungs[0], facts(), [])
    with pytest.raises(GateRefused, match="live max_model_len"):
        check_context(exact, exact.rungs[0], facts(max_model_len_tokens=65_535), prompts)
