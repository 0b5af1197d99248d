"""What is due after every history, and every history that cannot be."""

from typing import Any

import pytest

from fitladder.canonical import canonical_bytes
from fitladder.errors import LadderRefused
from fitladder.ladder.authorise import check_authorised, next_phase
from fitladder.ladder.walk import rung_name, walk
from fitladder.records.experiment import Experiment
from fitladder.records.outcome import PhaseOutcome


def test_the_first_probe_is_due_at_the_start(experiment: Experiment, key: Any) -> None:
    due = next_phase(experiment, [])
    assert (due.key, due.state, due.reason) == (
        key(49_152, "probe"),
        "open",
        "a fresh probe at 49k, the first rung",
    )
    check_authorised(experiment, [], key(49_152, "probe"))


def test_phases_follow_in_order_within_a_rung(experiment: Experiment, key: Any, done: Any) -> None:
    history: list[PhaseOutcome] = []
    for phase in ("probe", "base", "designed"):
        assert next_phase(experiment, history).key == key(49_152, phase)
        for other in ("probe", "base", "designed"):
            if other != phase:
                with pytest.raises(LadderRefused, match="is not authorised"):
                    check_authorised(experiment, history, key(49_152, other))
        with pytest.raises(LadderRefused, match=f"--phase {phase} --budget 49152"):
            check_authorised(experiment, history, key(61_440, "probe"))
        history.append(done(49_152, phase))
    due = next_phase(experiment, history[::-1])  # whatever order a history comes in
    assert (due.state, due.key) == ("selected", None)


@pytest.mark.parametrize("rejected_at", ["probe", "base", "designed"])
def test_any_rejection_authorises_only_the_next_fresh_probe(
    experiment: Experiment, key: Any, done: Any, rejected_at: str
) -> None:
    phases = ["probe", "base", "designed"]
    until = phases[: phases.index(rejected_at) + 1]
    history = [done(49_152, phase, phase != rejected_at) for phase in until]
    assert next_phase(experiment, history).key == key(61_440, "probe")
    assert next_phase(experiment, history).reason == "a fresh probe at 61k, 49k being rejected"
    for phase in phases:
        with pytest.raises(LadderRefused, match="not authorised"):
            check_authorised(experiment, history, key(49_152, phase))
    with pytest.raises(LadderRefused, match="not authorised"):
        check_authorised(experiment, history, key(61_440, "base"))


def test_after_the_last_rung_nothing_is_due(experiment: Experiment, key: Any, done: Any) -> None:
    history = [done(49_152, "probe", False), done(61_440, "probe", False)]
    due = next_phase(experiment, history)
    assert (due.state, due.key, due.resumable) == ("exhausted", None, None)
    with pytest.raises(LadderRefused, match="this ladder authorises no phase"):
        check_authorised(experiment, history, key(61_440, "base"))


@pytest.mark.parametrize("state", ["stopped", "terminal"])
def test_a_closed_experiment_authorises_nothing(
    experiment: Experiment, key: Any, begun: Any, state: str
) -> None:
    closed = experiment.model_copy(update={"state": state})
    for history in ([], [begun(49_152, "probe")]):
        due = next_phase(closed, history)
        assert (due.key, due.resumable, due.state) == (None, None, state)
        for resume in (False, True):
            with pytest.raises(LadderRefused, match=f"got {state}"):
                check_authorised(closed, history, key(49_152, "probe"), resume=resume)


def test_an_interrupted_phase_blocks_until_its_owner_resumes_it(
    experiment: Experiment, key: Any, done: Any, begun: Any
) -> None:
    history = [done(49_152, "probe", False), begun(61_440, "probe")]
    due = next_phase(experiment, history)
    assert (due.state, due.key, due.resumable) == ("interrupted", None, key(61_440, "probe"))
    with pytest.raises(LadderRefused, match="resume it under a fresh GO"):
        check_authorised(experiment, history, key(61_440, "probe"))
    check_authorised(experiment, history, key(61_440, "probe"), resume=True)
    for other in (key(61_440, "base"), key(49_152, "probe")):
        with pytest.raises(LadderRefused, match="not authorised to resume"):
            check_authorised(experiment, history, other, resume=True)


def test_a_fresh_phase_cannot_be_resumed(experiment: Experiment, key: Any) -> None:
    with pytest.raises(LadderRefused, match="to resume"):
        check_authorised(experiment, [], key(49_152, "probe"), resume=True)


@pytest.mark.parametrize("samples", [0, 47])
def test_an_incomplete_phase_rejects_and_authorises_nothing(
    experiment: Experiment, key: Any, done: Any, samples: int
) -> None:
    history = [done(49_152, "probe", False, samples=samples, unresolved_cap_contacts=0)]
    due = next_phase(experiment, history)
    assert (due.state, due.key) == ("incomplete", None)
    assert due.reason == f"49k probe: {samples} of 48 samples"
    assert walk(experiment, history).rungs == {49_152: "begun", 61_440: "not_reached"}


def _with_rungs(experiment: Experiment, budgets: list[int]) -> Experiment:
    plain = experiment.model_dump(mode="json")
    plain["engine"]["max_model_len_tokens"] = 262_144
    plain["rungs"] = [
        {"thinking_budget_tokens": budget, "max_num_seqs": 1, "capture_sizes": [1], "deadline_s": 1}
        for budget in budgets
    ]
    return Experiment.model_validate_json(canonical_bytes(plain))


def test_rungs_go_by_number_not_by_text(experiment: Experiment, key: Any, done: Any) -> None:
    four = _with_rungs(experiment, [8_192, 49_152, 61_440, 131_072])
    history: list[PhaseOutcome] = []
    for budget in (8_192, 49_152, 61_440, 131_072):
        assert next_phase(four, history).key == key(budget, "probe")
        history.append(done(budget, "probe", False))
    backwards = four.model_copy(update={"rungs": four.rungs[::-1]})
    assert next_phase(backwards, []).key == key(8_192, "probe")


def test_a_rung_without_a_receipt_is_never_skipped(experiment: Experiment, done: Any, begun: Any) -> None:
    higher = [done(61_440, phase) for phase in ("probe", "base", "designed")]
    for lower in ([], [begun(49_152, "probe")], [done(49_152, "probe"), begun(49_152, "base")]):
        with pytest.raises(LadderRefused, match=r"stands where nothing was authorised: got .* probe@61440"):
            walk(experiment, [*lower, *higher])


def test_phases_that_no_ladder_authorised(experiment: Experiment, done: Any, begun: Any) -> None:
    for history in (
        [done(49_152, "base")],
        [done(49_152, "probe", False), done(49_152, "base")],
        [begun(49_152, "probe"), done(49_152, "base")],
        [done(49_152, phase) for phase in ("probe", "base", "designed")] + [done(61_440, "probe")],
        [done(49_152, "probe", False), done(61_440, "probe", False), done(61_440, "base")],
    ):
        with pytest.raises(LadderRefused, match="stands where nothing was authorised"):
            next_phase(experiment, history)


def test_outcomes_of_elsewhere_or_twice(experiment: Experiment, done: Any, key: Any) -> None:
    one = done(49_152, "probe")
    with pytest.raises(LadderRefused, match="two outcomes"):
        walk(experiment, [one, one])
    for change, words in (
        ({"experiment_id": "another_one"}, "another experiment"),
        ({"thinking_budget_tokens": 50_000}, "no registered rung"),
    ):
        moved = one.model_copy(update={"key": one.key.model_copy(update=change)})
        with pytest.raises(LadderRefused, match=words):
            walk(experiment, [moved])


def test_rung_names() -> None:
    assert [rung_name(budget) for budget in (512, 1_024, 49_152, 61_440, 131_072)] == [
        "512",
        "1k",
        "49k",
        "61k",
        "131k",
    ]
