"""Status of an experiment: where it was read, what each phase shows, and the command that is due."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from support import bundles as make
from support.approvals import approve, key_of
from support.checkout import EXPERIMENT, ROOT, ROOT_VARIABLE, ScriptedCheckout, make_scripted_checkout

from fitladder.canonical import canonical_sha256
from fitladder.errors import BundleError, RootRefused
from fitladder.phase import run
from fitladder.phase.status import ExperimentStatus, PhaseStatus, experiment_status
from fitladder.records.binding import Binding
from fitladder.records.experiment import PHASES
from fitladder.registry.binding import bind
from fitladder.registry.load import load_registry
from fitladder.store.held_root import hold_root
from fitladder.workspace import Workspace

EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
FIT = "qwen35_4b_verified_macro_capacity_fit_rerun"


def _status(workspace: Workspace) -> ExperimentStatus:
    return experiment_status(workspace, load_registry(workspace.params), EXPERIMENT)


def _phase(status: ExperimentStatus, phase: str, budget: int) -> PhaseStatus:
    [found] = [
        one for one in status.phases if (one.key.phase, one.key.thinking_budget_tokens) == (phase, budget)
    ]
    return found


def _carried(made: ScriptedCheckout, folder: Path) -> Workspace:
    """Another checkout with the bundles under data/bundles, and no root named."""
    there = make_scripted_checkout(folder / "reader")
    there.document = made.document
    there.register()
    copy = there.folder / "data" / "bundles" / EXPERIMENT
    shutil.copytree(made.root, copy, ignore=shutil.ignore_patterns(".*"))
    return Workspace(there.folder, {})


def test_nothing_yet_names_every_phase_and_the_first_command(tmp_path: Path) -> None:
    made = make_scripted_checkout(tmp_path / "checkout")
    status = _status(made.workspace())
    assert status.source == "nothing yet"
    assert [(one.key.thinking_budget_tokens, one.key.phase) for one in status.phases] == [
        (budget, phase) for budget in (64, 96) for phase in PHASES
    ]
    assert {one.state for one in status.phases} == {"not_run"}
    assert status.next_command == f"fitladder launch {EXPERIMENT} --phase probe --budget 64"
    assert _status(Workspace(made.folder, {})).source == "nothing yet"  # no root named is no error


def test_a_root_is_read_with_counts_go_and_attempts(probe_and_base: ScriptedCheckout) -> None:
    status = _status(probe_and_base.workspace())
    assert status.source == "root"
    probe = _phase(status, "probe", 64)
    assert (probe.state, probe.adequate, probe.attempts) == ("complete", True, 1)
    assert probe.counts == {
        "samples": 4,
        "unresolved_cap_contacts": 0,
        "answer_limit_contacts": 0,
        "periodic_loop_contacts": 0,
        "preemptions": 0,
    }
    base = _phase(status, "base", 64)
    assert base.counts["samples"] == 6
    assert len({probe.go_sha256, base.go_sha256, None}) == 3
    assert _phase(status, "designed", 64).state == "not_run"
    assert status.next_command == f"fitladder launch {EXPERIMENT} --phase designed --budget 64"


def test_a_root_goes_before_the_carried_copy(probe_and_base: ScriptedCheckout, tmp_path: Path) -> None:
    carried = _carried(probe_and_base, tmp_path)
    without = _status(carried)
    assert without.source == "data/bundles"
    rooted = Workspace(carried.folder, {ROOT_VARIABLE: str(probe_and_base.root)})
    assert _status(rooted).source == "root"
    assert _status(rooted).phases == without.phases


def test_a_broken_carried_bundle_has_no_status(probe_and_base: ScriptedCheckout, tmp_path: Path) -> None:
    carried = _carried(probe_and_base, tmp_path)
    [samples] = (carried.folder / "data" / "bundles").glob("*/think_64/probe/samples.parquet")
    samples.chmod(0o644)
    samples.write_bytes(samples.read_bytes()[:-1])
    with pytest.raises(BundleError):
        _status(carried)


def test_a_named_root_that_may_not_be_used_is_refused_and_not_passed_over(
    probe_and_base: ScriptedCheckout, tmp_path: Path
) -> None:
    carried = _carried(probe_and_base, tmp_path)
    with pytest.raises(RootRefused):
        _status(Workspace(carried.folder, {ROOT_VARIABLE: "relative/root"}))


@pytest.mark.parametrize("moved", [True, False])
def test_moved_decision_code_bars_the_next_command_of_a_carried_copy(tmp_path: Path, moved: bool) -> None:
    made = make_scripted_checkout(tmp_path / "checkout")
    registry = load_registry(made.folder / "params.yaml")
    of = registry.experiment(EXPERIMENT)
    plain = bind(of).model_dump(exclude={"binding_sha256"})
    if moved:
        plain["decision_code"]["ladder/select.py"] = "0" * 64
    then = Binding(**plain, binding_sha256=canonical_sha256(plain))
    with hold_root(tmp_path / "root", EXPERIMENT, "test") as held:
        make.complete(held, make.begin(held, of, make.key(64, "probe", EXPERIMENT), binding=then))
    copy = made.folder / "data" / "bundles" / EXPERIMENT
    shutil.copytree(tmp_path / "root", copy, ignore=shutil.ignore_patterns(".*"))
    status = experiment_status(Workspace(made.folder, {}), registry, EXPERIMENT)
    assert status.source == "data/bundles"
    assert status.next.key is not None  # the ladder itself would go on
    assert (status.next_command is None) is moved
    assert (status.barred is not None and "decision_code.ladder/select.py" in status.barred) is moved


def test_an_interrupted_phase_is_resumed_by_name_and_counted(tmp_path: Path) -> None:
    made = make_scripted_checkout(tmp_path / "checkout")
    workspace, key = made.workspace(), key_of("probe", 64)
    for attempt, resume in (("ask-1", False), ("ask-2", True)):
        go = approve(workspace, key, attempt, resume=resume)
        with run.hold_phase(workspace, key, "gpu") as held:
            approved = run.authorise(held, go)
            prompts = run.check_inputs(held)
            with run.start_engine(held, prompts) as engine:
                run.write_preflight(held, approved, run.build(held, engine, prompts), prompts)
        status = _status(workspace)
        probe = _phase(status, "probe", 64)
        assert (probe.state, probe.go_sha256) == ("preflight_only", go)
        assert probe.counts == {}
        assert status.next_command == f"fitladder launch {EXPERIMENT} --phase probe --budget 64 --resume"
    assert probe.attempts == 2


def _recorded(experiment_id: str, **thresholds: Any) -> ExperimentStatus:
    registry = load_registry(ROOT / "params.yaml")
    own = registry.experiment(experiment_id)
    changed = own.model_copy(update={"thresholds": own.thresholds.model_copy(update=thresholds)})
    both = registry.model_copy(update={"experiments": {**registry.experiments, experiment_id: changed}})
    return experiment_status(Workspace(ROOT, {}), both, experiment_id)


def test_a_recorded_experiment_is_judged_by_its_counts_and_has_no_preemptions() -> None:
    status = _recorded(EXACT)
    assert status.source == "registered history"
    probe = _phase(status, "probe", 49_152)
    assert (probe.state, probe.adequate, probe.go_sha256) == ("complete", False, None)
    assert probe.counts["periodic_loop_contacts"] == 38
    assert "preemptions" not in probe.counts
    assert status.next_command is None


def test_a_recorded_phase_without_a_receipt_is_preflight_only() -> None:
    stopped = _phase(_recorded(FIT), "probe", 61_440)
    assert (stopped.state, stopped.adequate, stopped.counts) == ("preflight_only", None, {})
