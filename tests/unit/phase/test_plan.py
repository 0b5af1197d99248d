"""The reviewer's plan: every number follows from the registration, every line only where it holds."""

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.approvals import approve, ask_for, filled, key_of, make_key
from support.checkout import ScriptedCheckout, make_scripted_checkout

from fitladder.phase.ask import decide
from fitladder.phase.plan import PhasePlan, plan_phase, render_plan

PROBE = key_of("probe", 64)


@pytest.fixture
def made(tmp_path: Path) -> ScriptedCheckout:
    return make_scripted_checkout(tmp_path / "checkout")


@pytest.fixture
def plan(made: ScriptedCheckout) -> PhasePlan:
    """Of the first probe: 2 records x 2, 64 tokens of thinking, 24 of answer, width 4."""
    return plan_phase(made.workspace(), ask_for(made.workspace(), PROBE), "gpu")


def _of(plan: PhasePlan, *, speed: float | None = None, rung: Any = None, **engine: Any) -> PhasePlan:
    """The plan with other engine settings, rung or speed."""
    experiment = plan.evidence.experiment
    update: dict[str, Any] = {"engine": experiment.engine.model_copy(update=engine)}
    if rung is not None:
        update["rungs"] = (experiment.rungs[0].model_copy(update=rung), *experiment.rungs[1:])
    changed = dataclasses.replace(plan.evidence, experiment=experiment.model_copy(update=update))
    return dataclasses.replace(plan, evidence=changed, speed_tokens_per_s=speed)


def _row(plan: PhasePlan, name: str) -> str:
    [value] = [row["value"] for row in plan.table() if row["what"] == name]
    return str(value)


def test_samples_and_the_most_tokens(plan: PhasePlan) -> None:
    assert (plan.samples, plan.active) == (4, 4)
    assert plan.most_tokens == 4 * (64 + 24)
    assert _of(plan, rung={"max_num_seqs": 3}).active == 3
    assert _of(plan, rung={"max_num_seqs": 9}).active == 4
    assert _row(plan, "samples") == "2 records x 2"
    assert _row(plan, "deadline of the generation, s") == "120"


def test_a_matrix_phase_has_its_own_k(plan: PhasePlan) -> None:
    designed = dataclasses.replace(plan, ask=plan.ask.model_copy(update={"phase": "designed"}))
    assert (designed.samples, designed.most_tokens) == (2 * 3, 6 * (64 + 24))


@pytest.mark.parametrize(
    ("speed", "engine", "said"),
    [
        (None, {}, "unknown: nothing of this kind ran here yet; at most 352 tokens"),
        (10.0, {}, "at most 35 s at 10.0 tokens/s"),
        (0.1, {}, "at most 3520 s at 0.1 tokens/s"),
        (0.05, {}, "at most 1.96 h at 0.1 tokens/s"),
        (0.05, {"backend": "vllm-cuda", "tensor_parallel_size": 4}, "at most 1.96 h, 7.82 GPU-hours at"),
    ],
)
def test_the_duration_at_a_speed(plan: PhasePlan, speed: float | None, engine: Any, said: str) -> None:
    changed = _of(plan, speed=speed, **engine)
    assert changed.duration.startswith(said)
    assert ("GPU-hours" in changed.duration) is bool(engine)


@pytest.mark.parametrize(
    ("capture", "sizes", "said"),
    [
        ("none", None, "none: the engine runs eager"),
        ("implicit", None, "implicit: what vLLM resolves is recorded, uncovered widths stay"),
        ("exact", (1, 2, 3, 4), "[1, 2, 3, 4], exact; uncovered widths: none"),
        ("exact", (1, 2), "[1, 2], exact; uncovered widths: 3-4"),
    ],
)
def test_the_capture_list_with_its_uncovered_widths(
    plan: PhasePlan, capture: str, sizes: Any, said: str
) -> None:
    changed = _of(plan, rung={"capture_sizes": sizes}, capture=capture)
    assert _row(changed, "capture list") == said


def test_an_unknown_pool_is_said_and_not_guessed(plan: PhasePlan) -> None:
    assert _row(plan, "KV pool") == "13 blocks of 128 tokens, as registered"
    unknown = dataclasses.replace(plan, expected=None)
    assert _row(unknown, "KV pool") == "not known before the engine is built"
    assert _row(unknown, "KV fit") == "unknown"


def test_what_moved_since_the_last_go(made: ScriptedCheckout) -> None:
    workspace = made.workspace()
    ask = ask_for(workspace, PROBE)
    assert plan_phase(workspace, ask, "gpu").changed == "This is the first GO that is asked for."
    decide(workspace, ask, filled(ask, verdict="NO-GO"), datetime.now(UTC))
    second = ask_for(workspace, PROBE, "ask-2")
    assert plan_phase(workspace, second, "gpu").changed == "This is the first GO that is asked for."
    decide(workspace, second, filled(second), datetime.now(UTC))
    third = ask_for(workspace, PROBE, "ask-3", again=True)
    assert plan_phase(workspace, third, "gpu").changed == ("Nothing is changed since the last GO (probe@64).")
    made.section["sampling"]["top_k"] = 21
    made.register()
    moved = ask_for(workspace, PROBE, "ask-4", again=True)
    text = render_plan(plan_phase(workspace, moved, "gpu"))
    assert f"**The binding moved** since the last GO (probe@64): it was `{third.binding_sha256}`" in text


def test_the_digest_to_paste_has_a_line_of_its_own(plan: PhasePlan) -> None:
    lines = render_plan(plan).splitlines()
    assert lines.count(plan.ask.binding_sha256) == 1


def test_the_owners_hand_off_is_named_unless_the_owner_asks(tmp_path: Path) -> None:
    made = make_scripted_checkout(tmp_path / "checkout", _gpu_owners={"gpu": "olga", "mine": "rosa"})
    ask = ask_for(made.workspace(), PROBE)  # by rosa
    owned = plan_phase(made.workspace(), ask, "gpu")
    assert owned.owner == "olga"
    assert "the hand-off by **olga**, who owns `gpu`" in render_plan(owned)
    for pool in ("mine", "free"):
        plan = plan_phase(made.workspace(), ask, pool)
        assert plan.owner is None
        assert "hand-off by" not in render_plan(plan)


@pytest.mark.parametrize(
    ("review", "said"),
    [("independent", "anybody but rosa"), ("self", "the requester may answer (`review: self`)")],
)
def test_who_may_answer(tmp_path: Path, review: str, said: str) -> None:
    made = make_scripted_checkout(tmp_path / "checkout", review=review)
    text = render_plan(plan_phase(made.workspace(), ask_for(made.workspace(), PROBE), "gpu"))
    assert f"| reviewer | {said}; self-asserted: no reviewer has a registered key |" in text
    assert "fitladder go sign" not in text


def test_a_registered_key_asks_for_a_signature_and_says_how(tmp_path: Path) -> None:
    _, public = make_key(tmp_path, "jan")
    made = make_scripted_checkout(tmp_path / "c", _reviewers=[{"name": "jan", "ssh_public_key": public}])
    text = render_plan(plan_phase(made.workspace(), ask_for(made.workspace(), PROBE), "gpu"))
    assert "signed with a registered key |" in text
    assert "To sign: `fitladder go sign scripted_experiment --run ask-1 --key KEY`" in text


def test_a_first_attempt_names_no_other(made: ScriptedCheckout) -> None:
    approve(made.workspace(), PROBE)
    ask = ask_for(made.workspace(), PROBE, "ask-2", again=True)
    assert "| attempt |" not in render_plan(plan_phase(made.workspace(), ask, "gpu"))
