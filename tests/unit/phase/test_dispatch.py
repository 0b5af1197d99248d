"""Dispatch of an approved phase: what lets it go, what it waits for, and which GO a window takes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.approvals import ask_for, filled, key_of, run_whole_phase
from support.checkout import EXPERIMENT, ScriptedCheckout, make_scripted_checkout

from fitladder.approval.chain import chain_path
from fitladder.errors import GoRefused
from fitladder.phase.ask import decide, record_handoff
from fitladder.phase.dispatch import check_ready, window_go
from fitladder.records.approval import Ask

PROBE = key_of("probe", 64)
HANDOFF = {"hands_over": True, "owner": "olga", "expires": "2199-01-01T00:00:00Z", "signature": ""}


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def made(tmp_path: Path) -> ScriptedCheckout:
    return make_scripted_checkout(tmp_path / "checkout")


@pytest.fixture
def owned(tmp_path: Path) -> ScriptedCheckout:
    """A checkout whose pool `gpu` belongs to olga."""
    return make_scripted_checkout(tmp_path / "owned", _gpu_owners={"gpu": "olga"})


def _answer(made: ScriptedCheckout, ask_id: str = "ask-1", **changes: Any) -> tuple[Ask, str]:
    """An ask by rosa and jan's GO for it, beside any earlier one: the ask and the GO's digest."""
    ask = ask_for(made.workspace(), PROBE, ask_id, again=True)
    entry = decide(made.workspace(), ask, filled(ask, **changes), now())
    assert entry.kind == "go"
    return ask, entry.parsed().sha256


def test_an_ask_without_an_answer_waits_for_its_reviewer(made: ScriptedCheckout) -> None:
    ready = check_ready(made.workspace(), ask_for(made.workspace(), PROBE), "gpu", now())
    assert (ready.parameters, ready.waits_for) == ({}, f"the reviewer's answer to {PROBE}")


def test_the_answer_to_another_ask_counts_for_nothing(made: ScriptedCheckout) -> None:
    ask = ask_for(made.workspace(), PROBE, "ask-1")
    _answer(made, "ask-2")
    assert check_ready(made.workspace(), ask, "gpu", now()).waits_for is not None


def test_a_no_go_is_refused_by_its_kind(made: ScriptedCheckout) -> None:
    ask = ask_for(made.workspace(), PROBE)
    decide(made.workspace(), ask, filled(ask, verdict="NO-GO"), now())
    with pytest.raises(GoRefused, match="was not allowed: got no_go, need go"):
        check_ready(made.workspace(), ask, "gpu", now())


@pytest.mark.parametrize("allows_window", [True, False])
def test_the_parameters_of_the_phase_run(made: ScriptedCheckout, allows_window: bool) -> None:
    ask, go = _answer(made, allows_window=allows_window)
    ready = check_ready(made.workspace(), ask, "gpu", now())
    chain = chain_path(made.workspace().approvals, EXPERIMENT)
    assert ready.waits_for is None
    assert ready.parameters == {
        "experiment": EXPERIMENT,
        "phase": "probe",
        "budget": 64,
        "go_sha256": go,
        "approvals": chain.read_text(),
        "run_now": not allows_window,
    }


def test_a_binding_that_moved_after_the_go_is_refused(made: ScriptedCheckout) -> None:
    ask, _ = _answer(made)
    made.section["sampling"]["top_k"] = 21
    made.register()
    with pytest.raises(GoRefused, match=f"another binding.*got {ask.binding_sha256}"):
        check_ready(made.workspace(), ask, "gpu", now())


def test_a_used_go_is_refused(made: ScriptedCheckout) -> None:
    ask, go = _answer(made)
    run_whole_phase(made.workspace(), PROBE, go)
    with pytest.raises(GoRefused):
        check_ready(made.workspace(), ask, "gpu", now())


def test_an_owned_pool_waits_for_the_hand_off_of_this_ask(owned: ScriptedCheckout) -> None:
    workspace = owned.workspace()
    ask, _ = _answer(owned)
    assert check_ready(workspace, ask, "free", now()).waits_for is None
    other, _ = _answer(owned, "ask-2")
    record_handoff(workspace, other, "gpu", HANDOFF, now())
    assert check_ready(workspace, ask, "gpu", now()).waits_for == "the hand-off of gpu by olga"
    record_handoff(workspace, ask, "gpu", HANDOFF, now())
    assert check_ready(workspace, ask, "gpu", now()).waits_for is None


def test_a_hand_off_that_is_over_is_refused(owned: ScriptedCheckout) -> None:
    ask, _ = _answer(owned)
    soon = (now() + timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%SZ")
    record_handoff(owned.workspace(), ask, "gpu", HANDOFF | {"expires": soon}, now())
    assert check_ready(owned.workspace(), ask, "gpu", now()).waits_for is None
    with pytest.raises(GoRefused, match="expired"):
        check_ready(owned.workspace(), ask, "gpu", now() + timedelta(seconds=62))


def test_a_hand_off_of_another_pool_is_none(tmp_path: Path) -> None:
    made = make_scripted_checkout(tmp_path / "two", _gpu_owners={"gpu": "olga", "gpu2": "olga"})
    ask, _ = _answer(made)
    record_handoff(made.workspace(), ask, "gpu2", HANDOFF, now())
    with pytest.raises(GoRefused, match="gpu"):
        check_ready(made.workspace(), ask, "gpu", now())


def test_a_window_takes_the_oldest_go_that_allows_it(made: ScriptedCheckout) -> None:
    assert window_go(made.workspace(), EXPERIMENT, "gpu", now()) is None
    _answer(made, "ask-1")
    assert window_go(made.workspace(), EXPERIMENT, "gpu", now()) is None
    _, oldest = _answer(made, "ask-2", allows_window=True)
    _answer(made, "ask-3", allows_window=True)
    found = window_go(made.workspace(), EXPERIMENT, "gpu", now())
    assert found is not None
    assert found.sha256 == oldest


def test_a_window_passes_over_a_go_that_is_over(made: ScriptedCheckout) -> None:
    soon = (now() + timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%SZ")
    _answer(made, "ask-1", allows_window=True, expires=soon)
    _, lasting = _answer(made, "ask-2", allows_window=True)
    later = now() + timedelta(seconds=62)
    found = window_go(made.workspace(), EXPERIMENT, "gpu", later)
    assert found is not None
    assert found.sha256 == lasting


def test_a_window_takes_nothing_after_the_binding_moved(made: ScriptedCheckout) -> None:
    _answer(made, allows_window=True)
    made.section["sampling"]["top_k"] = 21
    made.register()
    assert window_go(made.workspace(), EXPERIMENT, "gpu", now()) is None


def test_a_window_needs_the_hand_off_too(owned: ScriptedCheckout) -> None:
    ask, _ = _answer(owned, allows_window=True)
    assert window_go(owned.workspace(), EXPERIMENT, "gpu", now()) is None
    record_handoff(owned.workspace(), ask, "gpu", HANDOFF, now())
    assert window_go(owned.workspace(), EXPERIMENT, "gpu", now()) is not None


def test_a_window_takes_no_phase_that_is_no_longer_due(made: ScriptedCheckout) -> None:
    _, other = _answer(made, "ask-1")
    _answer(made, "ask-2", allows_window=True)  # of the same phase, and unused
    assert window_go(made.workspace(), EXPERIMENT, "gpu", now()) is not None
    run_whole_phase(made.workspace(), PROBE, other)
    assert window_go(made.workspace(), EXPERIMENT, "gpu", now()) is None
