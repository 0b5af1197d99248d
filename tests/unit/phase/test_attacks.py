"""Somebody wants a better result than the one he got: every way round the ladder that a checkout offers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.approvals import approve, key_of, run_whole_phase
from support.checkout import (
    ADEQUATE,
    EXPERIMENT,
    REJECTED,
    ROOT_VARIABLE,
    ScriptedCheckout,
    make_scripted_checkout,
)

from fitladder.errors import (
    BindingChanged,
    BundleError,
    BundleTampered,
    GoRefused,
    LadderRefused,
    RegistrationError,
    RootRefused,
)
from fitladder.evidence.load import load_evidence
from fitladder.phase import run
from fitladder.workspace import Workspace

PROBE = key_of("probe", 64)
NEXT = key_of("probe", 96)


@pytest.fixture
def rejected(tmp_path: Path) -> tuple[ScriptedCheckout, str]:
    """A checkout whose first probe was rejected, and the GO that it used up; a second run would do well."""
    made = make_scripted_checkout(tmp_path / "checkout")
    made.script(outcomes=REJECTED)
    go = approve(made.workspace(), PROBE)
    run_whole_phase(made.workspace(), PROBE, go)
    assert load_evidence(made.workspace(), EXPERIMENT).next.key == NEXT
    made.script(outcomes=ADEQUATE)
    return made, go


def test_an_older_copy_of_the_root_is_no_way_to_begin_a_phase_anew(
    rejected: tuple[ScriptedCheckout, str],
) -> None:
    """The tidy way of deleting a bundle: the root as it was before the phase, catalog and all."""
    made, _ = rejected
    copy = made.folder / "copy"
    shutil.copytree(made.root, copy)
    run_whole_phase(made.workspace(), NEXT, approve(made.workspace(), NEXT, "ask-2"))
    shutil.rmtree(made.root)
    shutil.move(copy, made.root)
    fresh = approve(made.workspace(), NEXT, "ask-3")
    with pytest.raises(GoRefused, match=r"probe@96 was begun here, and the root no longer holds it"):
        run_whole_phase(made.workspace(), NEXT, fresh)
    assert made.generated() == ["probe@64", "probe@96"]


def test_a_probe_is_not_run_again_in_a_root_that_was_emptied_or_exchanged(
    rejected: tuple[ScriptedCheckout, str], tmp_path: Path
) -> None:
    made, go = rejected
    second = Workspace(
        made.folder, made.environment | {ROOT_VARIABLE: str(made.folder / "artifacts" / "second")}
    )
    for workspace in (second, made.workspace()):
        if workspace is not second:
            shutil.rmtree(made.root)
        with pytest.raises(GoRefused, match="used already"):
            run_whole_phase(workspace, PROBE, go)
        with pytest.raises(GoRefused, match="begun in another root"):
            run_whole_phase(workspace, PROBE, approve(workspace, PROBE, f"ask-{workspace is second}"))
    assert made.generated() == ["probe@64"]


EDITS: list[tuple[str, Any]] = [
    ("thresholds.unresolved_rate_below", 0.99),
    ("thresholds.loop_rate_at_most", 0.99),
    ("loop_rule.min_match_rate", 0.5),
    ("loop_rule.max_period_tokens", 8),
    ("sampling.answer_max_tokens", 25),
    ("semantics.min_parse_rate", 0.1),
    ("matrix_k", 4),
    ("kv_rule", "token"),
    ("review", "self"),
]


def test_nothing_registered_can_be_edited_after_a_result(rejected: tuple[ScriptedCheckout, str]) -> None:
    made, _ = rejected
    for field, value in EDITS:
        *parents, leaf = field.split(".")
        section = made.section
        for parent in parents:
            section = section[parent]
        before = section[leaf]
        section[leaf] = value
        made.register()
        with pytest.raises(BindingChanged, match=field):
            load_evidence(made.workspace(), EXPERIMENT)
        section[leaf] = before
    made.register()
    assert load_evidence(made.workspace(), EXPERIMENT).next.key == NEXT


def test_rungs_are_not_reordered_renumbered_or_struck(rejected: tuple[ScriptedCheckout, str]) -> None:
    made, _ = rejected
    rungs = made.section["rungs"]
    for changed, error, words in (
        (rungs[::-1], RegistrationError, "must strictly increase"),
        (rungs[1:], BindingChanged, r"rungs\[0\]"),
        ([{**rungs[0], "thinking_budget_tokens": 65}, rungs[1]], BindingChanged, r"rungs\[0\]"),
        ([*rungs, {**rungs[1], "thinking_budget_tokens": 128}], BindingChanged, r"rungs\[2\]"),
    ):
        made.section["rungs"] = changed
        made.register()
        with pytest.raises(error, match=words):
            load_evidence(made.workspace(), EXPERIMENT)


def test_a_rung_under_another_name_is_refused(rejected: tuple[ScriptedCheckout, str]) -> None:
    made, _ = rejected
    folder = made.root / "think_64"
    for name in ("think_96", "think_064", "think_4_9", "think_+64", "think_64 ", "think_\uff16\uff14"):
        folder.rename(made.root / name)
        with pytest.raises(BundleError):
            load_evidence(made.workspace(), EXPERIMENT)
        (made.root / name).rename(folder)
    assert load_evidence(made.workspace(), EXPERIMENT).next.key == NEXT


def test_a_failed_bundle_is_not_deleted_emptied_or_copied_over(
    rejected: tuple[ScriptedCheckout, str],
) -> None:
    made, _ = rejected
    probe, kept = made.root / "think_64" / "probe", made.folder / "kept"
    shutil.copytree(probe, kept)
    shutil.rmtree(probe)
    with pytest.raises(BundleTampered, match="has vanished"):
        load_evidence(made.workspace(), EXPERIMENT)
    probe.mkdir()
    shutil.copy(kept / "preflight.json", probe)
    with pytest.raises(BundleError):
        load_evidence(made.workspace(), EXPERIMENT)
    shutil.rmtree(probe)
    shutil.copytree(kept, probe)
    assert load_evidence(made.workspace(), EXPERIMENT).next.key == NEXT
    shutil.copytree(probe, made.root / "think_96" / "probe")
    with pytest.raises(BundleError):
        load_evidence(made.workspace(), EXPERIMENT)


def test_a_bundle_of_another_experiment_or_of_a_better_run_does_not_fit_in(
    rejected: tuple[ScriptedCheckout, str], tmp_path: Path
) -> None:
    """The same protocol run well in another checkout: its files are whole, yet not this root's."""
    made, _ = rejected
    better = make_scripted_checkout(tmp_path / "better")
    run_whole_phase(better.workspace(), PROBE, approve(better.workspace(), PROBE))
    assert load_evidence(better.workspace(), EXPERIMENT).next.key == key_of("base", 64)
    shutil.rmtree(made.root / "think_64")
    shutil.copytree(better.root / "think_64", made.root / "think_64")
    with pytest.raises(BundleTampered):
        load_evidence(made.workspace(), EXPERIMENT)


def test_a_root_behind_a_link_is_refused(tmp_path: Path) -> None:
    made = make_scripted_checkout(tmp_path / "checkout")
    (made.folder / "real").mkdir()
    made.root.parent.mkdir(exist_ok=True)
    os.symlink(made.folder / "real", made.root)
    with pytest.raises(RootRefused, match="symbolic link"):
        approve(made.workspace(), PROBE)


def test_a_terminal_experiment_authorises_nothing(tmp_path: Path) -> None:
    made = make_scripted_checkout(tmp_path / "checkout", state="terminal")
    with pytest.raises(LadderRefused, match="terminal"):
        approve(made.workspace(), PROBE)


def test_a_matrix_is_never_less_than_a_probe(tmp_path: Path) -> None:
    made = make_scripted_checkout(tmp_path / "checkout", matrix_k=1)
    with pytest.raises(RegistrationError, match="matrix_k: got 1, need more than probe_k 2"):
        approve(made.workspace(), PROBE)


def test_an_engine_that_stands_in_for_the_real_one_is_on_record_whatever_it_says(tmp_path: Path) -> None:
    made = make_scripted_checkout(tmp_path / "checkout")
    made.script(outcomes=ADEQUATE, facts={"engine": "vllm"})
    run_whole_phase(made.workspace(), PROBE, approve(made.workspace(), PROBE))
    recorded = load_evidence(made.workspace(), EXPERIMENT).bundles[0].preflight
    assert recorded.engine.engine == "vllm"
    assert "counting_engine.py" in recorded.runtime.environment["FITLADDER_ENGINE_COMMAND"]
    base = key_of("base", 64)
    go = approve(made.workspace(), base, "ask-2")
    other = made.environment["FITLADDER_ENGINE_COMMAND"].replace("script.json", "other.json")
    shutil.copy(made.folder / "script.json", made.folder / "other.json")
    workspace = Workspace(made.folder, made.environment | {"FITLADDER_ENGINE_COMMAND": other})
    with pytest.raises(BindingChanged, match=r"environment\.FITLADDER_ENGINE_COMMAND changed"):
        run_whole_phase(workspace, base, go)


def test_two_processes_of_one_flow_run_make_one_generation(tmp_path: Path) -> None:
    """The id of a flow run opens nothing: the second process with the same one finds the root held."""
    made = make_scripted_checkout(tmp_path / "checkout")
    go = approve(made.workspace(), PROBE)
    with run.hold_phase(made.workspace(), PROBE, "gpu", flow_run_id="run-1") as held:
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
            "from support.approvals import key_of\nfrom support.checkout import ScriptedCheckout\n"
            "from fitladder.phase import run\n"
            "made = ScriptedCheckout(Path(sys.argv[2]))\n"
            "with run.hold_phase(made.workspace(), key_of('probe', 64), 'gpu', flow_run_id='run-1'):\n"
            "    pass\n"
        )
        tests = str(Path(__file__).parents[2])
        second = subprocess.run(
            [sys.executable, "-c", code, tests, str(made.folder)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert second.returncode != 0
        assert "RootBusy" in second.stderr
        assert "run-1" in second.stderr
        assert held.evidence.begun == ()
    assert run_whole_phase(made.workspace(), PROBE, go).rows == 4
    assert made.generated() == ["probe@64"]
