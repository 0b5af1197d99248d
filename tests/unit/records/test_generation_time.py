"""Both stages are counted, in microseconds, and no time gives no speed."""

import pytest

from fitladder.records.generation_time import generation_s, generation_us, s_to_us, tokens_per_s, us_to_s
from fitladder.records.receipt import Totals

TOTALS = Totals(
    sampled_tokens=2_363_163,
    trimmed_tokens=0,
    injected_tokens=0,
    logical_prompt_tokens=48,
    stage1_generation_us=4_809_081_000,
    stage2_generation_us=14,
)


def test_both_stages_are_counted() -> None:
    assert generation_us(TOTALS) == 4_809_081_014
    assert generation_s(TOTALS) == 4809.081014
    assert tokens_per_s(TOTALS.sampled_tokens, generation_s(TOTALS)) == pytest.approx(491.396005)


def test_no_time_gives_no_speed() -> None:
    assert tokens_per_s(5, 0.0) is None


@pytest.mark.parametrize("us", [0, 1, 14, 4_809_081_014, 10**14 + 1])
def test_microseconds_survive_the_way_through_seconds(us: int) -> None:
    assert s_to_us(us_to_s(us)) == us
