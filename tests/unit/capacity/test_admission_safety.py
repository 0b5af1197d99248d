"""Edges of the safe start; the exhaustive comparison is in tests/property."""

import pytest

from fitladder.capacity.admission_safety import ActiveSequence, earliest_safe_step
from fitladder.capacity.pool import Pool
from fitladder.errors import GateRefused

POOL = Pool(usable_blocks=6, block_size_tokens=4, mamba_groups=1)


def test_an_idle_engine_starts_at_once() -> None:
    assert earliest_safe_step(POOL, [], 4, 8, 100) == 0


def test_room_for_both_peaks_needs_no_wait() -> None:
    # each peaks at ceil((4 + 5 - 1) / 4) + 1 = 3 blocks
    assert earliest_safe_step(POOL, [ActiveSequence(4, 5, 4)], 4, 5, 100) == 0


def test_waits_until_its_growth_meets_the_others_end() -> None:
    # both peak at 4 blocks: on the other's last step, 8, the new one may hold only its first 2
    assert earliest_safe_step(POOL, [ActiveSequence(4, 9, 4)], 4, 9, 100) == 8


def test_waits_for_an_end_where_not_even_the_prompt_fits() -> None:
    assert earliest_safe_step(POOL, [ActiveSequence(16, 3)], 8, 3, 100) == 3


def test_a_prefill_that_may_last_longer_is_charged_longer() -> None:
    slow = ActiveSequence(4, 9, 4)
    assert earliest_safe_step(POOL, [slow], 4, 9, prefill_budget_tokens=2) == 9


@pytest.mark.parametrize("remaining", [0, 10])
def test_sequences_of_another_budget_are_refused(remaining: int) -> None:
    with pytest.raises(GateRefused, match="another budget"):
        earliest_safe_step(POOL, [ActiveSequence(4, remaining)], 4, 9, 100)


def test_one_of_another_budget_among_others_is_refused() -> None:
    for odd in (0, 10):
        with pytest.raises(GateRefused, match="another budget"):
            earliest_safe_step(POOL, [ActiveSequence(4, 5), ActiveSequence(4, odd)], 4, 9, 100)
