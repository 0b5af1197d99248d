"""Conflicts between what Prefect says and what the disk proves, and errors told from a run's message."""

import pytest

from fitladder.errors import EngineFailed, GateRefused
from fitladder.prefect_api.conflicts import OnDisk, compare
from fitladder.prefect_api.follow import refusal_of
from fitladder.prefect_api.runs import FlowRun
from fitladder.records.bundle_key import BundleKey

KEY = BundleKey(experiment_id="some_experiment", thinking_budget_tokens=512, phase="probe")
GO, OTHER = "a" * 64, "b" * 64


def run(
    state_type: str, go: str = GO, name: str | None = None, message: str = "", **parameters: object
) -> FlowRun:
    values = {"experiment": KEY.experiment_id, "phase": KEY.phase, "budget": 512, "go_sha256": go}
    return FlowRun(
        run_id=f"{state_type}-{go[:1]}",
        name="calm-lynx",
        flow="phase",
        state_type=state_type,
        state_name=name or state_type.capitalize(),
        message=message,
        parameters=values | parameters,
    )


def conflict(disk: str, *runs: FlowRun, held: bool = False) -> str | None:
    found = OnDisk(KEY, disk, None if disk == "not_run" else GO)
    return compare([found], runs, root_is_held=held)[0].conflict


@pytest.mark.parametrize(
    ("disk", "runs", "held", "part"),
    [
        ("complete", [run("COMPLETED")], False, None),
        ("complete", [run("CRASHED")], False, "over a valid receipt"),
        ("complete", [run("FAILED")], False, "over a valid receipt"),
        ("complete", [run("CANCELLED")], False, "over a valid receipt"),
        ("complete", [run("COMPLETED"), run("FAILED")], False, None),  # a refused replay of a good run
        ("complete", [], False, None),
        ("complete", [run("FAILED", OTHER)], False, "over a valid receipt"),
        ("complete", [run("RUNNING")], True, None),
        ("complete", [run("RUNNING")], False, "nobody on this host holds the root"),
        ("not_run", [run("COMPLETED")], False, "no receipt"),
        ("not_run", [run("COMPLETED", name="Delivered")], False, None),
        ("not_run", [run("CRASHED")], False, None),
        ("not_run", [run("SCHEDULED")], False, None),
        ("preflight_only", [run("COMPLETED")], False, "no receipt"),
        ("preflight_only", [run("CRASHED")], False, None),
        ("preflight_only", [run("RUNNING")], True, None),
        ("preflight_only", [run("RUNNING")], False, "it is dead or elsewhere"),
        ("complete", [run("CRASHED", budget=1024)], False, None),
        ("complete", [run("CRASHED", phase="base")], False, None),
    ],
)
def test_each_pair_of_prefect_state_and_bundle_state(disk, runs, held, part) -> None:
    found = conflict(disk, *runs, held=held)
    assert (found is None) if part is None else (part in str(found) and "calm-lynx" in str(found))


@pytest.mark.parametrize(
    ("disk", "one", "conflict", "elsewhere"),
    [
        ("not_run", run("COMPLETED"), None, "says Completed on queue default; no receipt of it is here yet"),
        ("not_run", run("RUNNING"), None, "says Running"),
        ("preflight_only", run("PENDING"), None, "says Pending"),
        ("not_run", run("FAILED"), None, None),
        ("not_run", run("COMPLETED", name="Delivered"), None, None),
        ("complete", run("COMPLETED"), None, None),
        ("complete", run("CRASHED"), "over a valid receipt", None),
    ],
)
def test_without_the_root_a_run_elsewhere_contradicts_nothing(
    disk: str, one: FlowRun, conflict: str | None, elsewhere: str | None
) -> None:
    found = OnDisk(KEY, disk, None if disk == "not_run" else GO)
    [beside] = compare([found], [one], root_is_held=False, root_is_here=False)
    for said, need in ((beside.conflict, conflict), (beside.elsewhere, elsewhere)):
        assert (said is None) if need is None else need in str(said)


def test_a_failed_runs_message_becomes_its_own_refusal_again() -> None:
    told = "Flow run encountered an exception: GateRefused: KV fit: got 24, need 12; see the plan"
    error = refusal_of(run("FAILED", message=told))
    assert isinstance(error, GateRefused)
    assert str(error) == "KV fit: got 24, need 12; see the plan"
    assert error.exit_code == 5


@pytest.mark.parametrize("message", ["", "Flow run infrastructure exited with status -9", "KeyError: 'x'"])
def test_any_other_end_is_named_with_its_state(message: str) -> None:
    error = refusal_of(run("CRASHED", message=message))
    assert isinstance(error, EngineFailed)
    assert "calm-lynx" in str(error)
    assert "Crashed" in str(error)
