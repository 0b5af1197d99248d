"""One GO is one experiment, binding, rung, phase, use and window; every deviation names both values."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fitladder.approval.check import (
    Situation,
    check_handed_over,
    check_usable,
    find_go,
    owner_to_ask,
    same_person,
)
from fitladder.errors import GoRefused
from fitladder.records.approval import CHECKLIST, Go, Handoff
from fitladder.records.approval_entry import Entry
from fitladder.records.bundle_key import BundleKey
from fitladder.records.registry import Registry
from fitladder.registry.load import load_registry

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EXPERIMENT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
BINDING = "a" * 64
REGISTRY = load_registry(Path("params.yaml"))


def go(**changes: object) -> Go:
    values = {
        "schema_version": 1,
        "ask_id": "ask-1",
        "experiment_id": EXPERIMENT,
        "binding_sha256": BINDING,
        "thinking_budget_tokens": 49152,
        "phase": "probe",
        "requester": "rosa",
        "reviewer": "jan",
        "verdict": "GO",
        "checklist": dict.fromkeys(CHECKLIST, True),
        "notes": "",
        "not_before": "2026-01-02T03:00:00Z",
        "expires": "2026-01-02T04:00:00Z",
        "allows_window": False,
    }
    return Go(**(values | changes))


def here(**changes: object) -> Situation:
    situation = Situation(
        key=BundleKey(experiment_id=EXPERIMENT, thinking_budget_tokens=49152, phase="probe"),
        binding_sha256=BINDING,
        now=NOW,
        experiment=REGISTRY.experiment(EXPERIMENT),
        registry=Registry(experiments=REGISTRY.experiments, reviewers=(), gpu_owners={}),
        used_go_sha256s=frozenset(),
    )
    return replace(situation, **changes)


def test_a_good_go_is_usable_and_says_that_its_name_is_only_asserted() -> None:
    assert check_usable(go(), None, here()) == "self-asserted"


@pytest.mark.parametrize(
    ("changes", "got", "need"),
    [
        ({"verdict": "NO-GO"}, "NO-GO", "GO"),
        ({"binding_sha256": "b" * 64}, "b" * 64, BINDING),
        ({"phase": "base"}, "base@49152", "probe@49152"),
        ({"work_queue": "gpuhost"}, "work queue gpuhost", "work queue default"),
        ({"thinking_budget_tokens": 61440}, "probe@61440", "probe@49152"),
        (
            {"experiment_id": "qwen35_4b_verified_macro_capacity_fit_rerun"},
            "capacity_fit",
            "exact_cudagraph",
        ),
        ({"not_before": "2026-01-02T03:04:06Z"}, "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"),
        ({"expires": "2026-01-02T03:04:04Z"}, "2026-01-02T03:04:05Z", "2026-01-02T03:04:04Z"),
        ({"reviewer": "Rosa"}, "'Rosa'", "independent"),
        ({"checklist": dict.fromkeys(CHECKLIST, True) | {"plan_read": False}}, "plan_read", "every item"),
        ({"checklist": {}}, "plan_read", "every item"),
        ({"checklist": dict.fromkeys(CHECKLIST, True) | {"other": True}}, "other", "every item"),
    ],
)
def test_each_deviation_is_refused_with_both_values(changes: dict[str, object], got: str, need: str) -> None:
    with pytest.raises(GoRefused) as refused:
        check_usable(go(**changes), None, here())
    assert got in str(refused.value.got)
    assert need in str(refused.value.need)


def test_a_replayed_go_is_refused() -> None:
    used = go()
    with pytest.raises(GoRefused, match="was used already"):
        check_usable(used, None, here(used_go_sha256s=frozenset({used.sha256})))


def test_the_last_second_of_the_window_counts_and_the_next_does_not() -> None:
    last = go(expires="2026-01-02T03:04:05Z")
    assert check_usable(last, None, here()) == "self-asserted"
    with pytest.raises(GoRefused, match="has expired"):
        check_usable(last, None, here(now=NOW + timedelta(seconds=1)))


def test_a_self_go_is_for_experiments_registered_so() -> None:
    own = REGISTRY.experiment(EXPERIMENT).model_copy(update={"review": "self"})
    assert check_usable(go(reviewer="rosa"), None, here(experiment=own)) == "self"


def test_a_signature_nobody_can_check_is_refused() -> None:
    with pytest.raises(GoRefused, match="no key is registered"):
        check_usable(go(), "-----BEGIN SSH SIGNATURE-----", here())


@pytest.mark.parametrize(("left", "right"), [("Jan  Novák", "jan novák"), ("José", "José"), ("A", "a")])
def test_the_same_person_under_another_spelling(left: str, right: str) -> None:
    assert same_person(left, right)
    assert not same_person(left, right + "2")


def entry(kind: str, statement: Go | Handoff) -> Entry:
    return Entry(
        schema_version=1,
        experiment_id=statement.experiment_id,
        sequence=1,
        previous_sha256="0" * 64,
        kind=kind,
        recorded="2026-01-02T03:04:05Z",
        statement=statement.model_dump(mode="json"),
        signature=None,
        identity="self-asserted",
    )


def handoff(**changes: object) -> Handoff:
    values = {
        "schema_version": 1,
        "ask_id": "ask-1",
        "experiment_id": EXPERIMENT,
        "binding_sha256": BINDING,
        "thinking_budget_tokens": 49152,
        "phase": "probe",
        "work_pool": "gpu",
        "owner": "olga",
        "not_before": "2026-01-02T03:00:00Z",
        "expires": "2026-01-02T04:00:00Z",
    }
    return Handoff(**(values | changes))


def owned(owner: str) -> Situation:
    return here(registry=Registry(experiments=REGISTRY.experiments, reviewers=(), gpu_owners={"gpu": owner}))


def test_a_go_without_the_owners_handoff_dispatches_nothing() -> None:
    with pytest.raises(GoRefused, match="was not handed over") as refused:
        check_handed_over([entry("go", go())], go(), "gpu", owned("olga"))
    assert "olga" in str(refused.value.need)
    check_handed_over([entry("go", go()), entry("handoff", handoff())], go(), "gpu", owned("olga"))
    check_handed_over([], go(), "gpu", owned("Rosa"))  # the requester owns the pool
    check_handed_over([], go(), "cpu", owned("olga"))  # nobody owns this one


@pytest.mark.parametrize(
    "changes",
    [
        {"work_pool": "other"},
        {"owner": "rosa"},
        {"phase": "base"},
        {"binding_sha256": "c" * 64},
        {"expires": "2026-01-02T03:04:00Z"},
        {"ask_id": "ask-0"},
    ],
)
def test_a_handoff_for_something_else_does_not_count(changes: dict[str, object]) -> None:
    with pytest.raises(GoRefused):
        check_handed_over([entry("handoff", handoff(**changes))], go(), "gpu", owned("olga"))


def test_whose_handoff_is_needed() -> None:
    assert owner_to_ask(owned("olga").registry, "gpu", "rosa") == "olga"
    assert owner_to_ask(owned("olga").registry, "gpu", "OLGA") is None
    assert owner_to_ask(here().registry, "gpu", "rosa") is None


def test_a_go_is_found_by_its_digest_only() -> None:
    assert find_go([entry("go", go())], go().sha256)[0] == go()
    with pytest.raises(GoRefused, match="no such GO"):
        find_go([entry("go", go())], go(notes="changed").sha256)


def test_a_statement_refuses_a_window_that_ends_before_it_begins() -> None:
    with pytest.raises(ValueError, match="later than not_before"):
        go(expires="2026-01-02T03:00:00Z")


@pytest.mark.parametrize("name", ["", " jan", "jan ", "\n"])
def test_a_reviewer_needs_a_name(name: str) -> None:
    with pytest.raises(ValueError, match="reviewer"):
        go(reviewer=name)


@pytest.mark.parametrize("text", ["2026-01-02", "2026-01-02T03:04:05+00:00", "2026-02-30T00:00:00Z", ""])
def test_moments_are_explicit_utc(text: str) -> None:
    with pytest.raises(ValueError, match="expires"):
        go(expires=text)
