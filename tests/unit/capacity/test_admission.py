"""What spaced admission answers to an engine loop."""

import pytest

from fitladder.capacity.admission import SpacedAdmission
from fitladder.capacity.admission_safety import ActiveSequence
from fitladder.capacity.pool import Pool
from fitladder.errors import GateRefused

POOL = Pool(229, 528, 3)


def spaced(prompts: list[int], width: int = 64, batched: int = 32_768) -> SpacedAdmission:
    return SpacedAdmission(POOL, prompts, 3_072, width, batched)


def test_spaced_follows_its_plan() -> None:
    policy = spaced([990] * 48)
    assert policy.next_step(0, [], [990] * 48) == 0
    second = policy.next_step(0, [ActiveSequence(990, 3_072, 990)], [990] * 47)
    assert second == policy.starts[1] > 0


def test_spaced_never_waits_for_an_idle_engine() -> None:
    assert spaced([990] * 48).next_step(5_000, [], [990]) == 5_000


def test_spaced_stops_at_its_width_and_with_nothing_waiting() -> None:
    policy = spaced([990] * 48, width=2)
    assert policy.next_step(0, [ActiveSequence(990, 3_072)] * 2, [990] * 46) is None
    assert policy.next_step(0, [], []) is None


def test_spaced_drops_its_pauses_once_many_end_early() -> None:
    policy = spaced([990] * 48)
    active = [ActiveSequence(1_000, 3_000)]
    assert policy.next_step(0, active, [990] * 40) == policy.starts[8] > 0
    policy.record_end(ActiveSequence(1_100, 0))
    assert policy.next_step(0, active, [990] * 40) == policy.starts[8]
    policy.record_end(ActiveSequence(1_100, 2_900))  # one of eight gave nearly all back: more than a twelfth
    assert policy.next_step(0, active, [990] * 40) == 0


def test_spaced_keeps_its_pauses_while_exactly_a_twelfth_came_back() -> None:
    policy = spaced([990] * 48)
    active = [ActiveSequence(1_000, 3_000)]
    policy.record_end(ActiveSequence(990, 3_072))  # a whole sequence, of twelve started
    assert policy.next_step(0, active, [990] * 36) == policy.starts[12] > 0
    policy.record_end(ActiveSequence(4_061, 1))
    assert policy.next_step(0, active, [990] * 36) == 0


def test_spaced_counts_safe_steps_from_now() -> None:
    policy = SpacedAdmission(Pool(6, 4, 1), [4, 4], 9, 2, 100)
    policy.record_end(ActiveSequence(4, 9))  # no pauses any more: the proof alone decides
    assert policy.next_step(1_000, [ActiveSequence(4, 9, 4)], [4]) == 1_008


def test_spaced_refuses_sequences_it_did_not_plan() -> None:
    policy = spaced([990, 980])
    for waiting in ([980, 980], [980, 990, 980], [990]):
        with pytest.raises(GateRefused, match="not the planned ones"):
            policy.next_step(0, [], waiting)


def test_spaced_needs_room_to_prefill() -> None:
    with pytest.raises(GateRefused, match="no room to prefill"):
        spaced([990], width=64, batched=64)
    assert spaced([990], width=64, batched=65).prefill_budget_tokens == 1
