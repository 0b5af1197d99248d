"""A phase without Prefect: exactly once, fail closed, and what each failure leaves on disk."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.approvals import approve, key_of, run_whole_phase
from support.checkout import (
    ADEQUATE,
    EXPERIMENT,
    REJECTED,
    ROOT,
    ROOT_VARIABLE,
    ScriptedCheckout,
    make_scripted_checkout,
)

from fitladder.approval.chain import chain_path
from fitladder.errors import (
    BindingChanged,
    EngineFailed,
    FitladderError,
    GateRefused,
    GoRefused,
    InputRefused,
    LadderRefused,
    RootBusy,
)
from fitladder.evidence.load import load_evidence
from fitladder.files.lock import hold_lock
from fitladder.phase import run
from fitladder.records.layout import bundle_folder
from fitladder.workspace import Workspace

PROBE = key_of("probe", 64)


@pytest.fixture
def made(tmp_path: Path) -> ScriptedCheckout:
    return make_scripted_checkout(tmp_path / "checkout")


def on_disk(made: ScriptedCheckout, key=PROBE) -> list[str]:
    folder = made.root / bundle_folder(key)
    return sorted(os.listdir(folder)) if folder.exists() else []


def test_one_go_makes_one_receipt_and_the_receipt_names_it(made: ScriptedCheckout) -> None:
    go = approve(made.workspace(), PROBE)
    receipt = run_whole_phase(made.workspace(), PROBE, go)
    assert (receipt.go_sha256, receipt.go_identity, receipt.rows) == (go, "self-asserted", 4)
    assert made.generated() == ["probe@64"]
    assert load_evidence(made.workspace(), EXPERIMENT).bundles[0].preflight.engine.engine == "scripted"
    assert not list((made.folder / "runs" / ".scratch").iterdir())


def test_a_phase_with_a_valid_receipt_is_not_redone(made: ScriptedCheckout) -> None:
    go = approve(made.workspace(), PROBE)
    first = run_whole_phase(made.workspace(), PROBE, go)
    bytes_before = (made.root / bundle_folder(PROBE) / "receipt.json").read_bytes()
    assert run_whole_phase(made.workspace(), PROBE, go) == first
    assert made.generated() == ["probe@64"]
    assert (made.root / bundle_folder(PROBE) / "receipt.json").read_bytes() == bytes_before


def test_the_whole_ladder_each_phase_with_its_own_go(made: ScriptedCheckout) -> None:
    made.script(outcomes=REJECTED)
    run_whole_phase(made.workspace(), PROBE, approve(made.workspace(), PROBE))
    made.script(outcomes=ADEQUATE)
    for number, phase in enumerate(("probe", "base", "designed")):
        key = key_of(phase, 96)
        run_whole_phase(made.workspace(), key, approve(made.workspace(), key, f"ask-{number + 2}"))
    evidence = load_evidence(made.workspace(), EXPERIMENT)
    assert made.generated() == ["probe@64", "probe@96", "base@96", "designed@96"]
    assert (evidence.next.state, [audit.adequate for audit in evidence.audits]) == (
        "selected",
        [False, True, True, True],
    )


@pytest.mark.parametrize("key", [key_of("base", 64), key_of("probe", 96), key_of("designed", 64)])
def test_a_phase_that_is_not_due_is_not_even_asked_for(made: ScriptedCheckout, key) -> None:
    with pytest.raises(LadderRefused, match="not authorised"):
        approve(made.workspace(), key)
    assert not chain_path(made.workspace().approvals, EXPERIMENT).exists()


def test_an_unknown_rung_or_experiment_is_one_line(made: ScriptedCheckout) -> None:
    for key in (key_of("probe", 65), key_of("probe", 64, "no_such_experiment")):
        with pytest.raises(FitladderError):
            approve(made.workspace(), key)


def test_a_go_of_another_phase_is_refused_at_the_engine_too(made: ScriptedCheckout) -> None:
    go = approve(made.workspace(), PROBE)
    run_whole_phase(made.workspace(), PROBE, go)
    base = key_of("base", 64)
    with pytest.raises(GoRefused, match="used already"):
        run_whole_phase(made.workspace(), base, go)
    with pytest.raises(GoRefused, match="no such GO"):
        run_whole_phase(made.workspace(), base, "f" * 64)
    assert made.generated() == ["probe@64"]
    assert on_disk(made, base) == []


def test_params_changed_after_the_go_are_refused_with_both_bindings(made: ScriptedCheckout) -> None:
    go = approve(made.workspace(), PROBE)
    made.section["sampling"]["temperature"] = 0.7
    made.register()
    with pytest.raises(GoRefused, match="another binding"):
        run_whole_phase(made.workspace(), PROBE, go)
    assert made.generated() == []
    assert on_disk(made) == []


def test_params_changed_after_a_receipt_name_the_field(made: ScriptedCheckout) -> None:
    run_whole_phase(made.workspace(), PROBE, approve(made.workspace(), PROBE))
    made.section["sampling"]["run_seed"] = 2702
    made.register()
    with pytest.raises(BindingChanged, match="run_seed") as refused:
        approve(made.workspace(), key_of("base", 64), "ask-2")
    assert (refused.value.got, refused.value.need) == (2701, 2702)


def test_another_engine_within_a_rung_is_drift_and_a_measured_pool_is_not(made: ScriptedCheckout) -> None:
    run_whole_phase(made.workspace(), PROBE, approve(made.workspace(), PROBE))
    base = key_of("base", 64)
    go = approve(made.workspace(), base, "ask-2")
    made.script(outcomes=ADEQUATE, runtime={"packages": {"scripted": "2"}})
    with pytest.raises(BindingChanged, match="packages"):
        run_whole_phase(made.workspace(), base, go)
    assert on_disk(made, base) == []
    made.script(outcomes=ADEQUATE, facts={"load_s": 3.5})
    assert run_whole_phase(made.workspace(), base, go).rows == 6  # the GO was not used by what failed


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"block_size_tokens": None}, "block"),
        ({"num_blocks": 12}, "num_blocks"),
        ({"max_num_seqs": 5}, "max_num_seqs"),
        ({"engine_version": "2"}, "engine_version"),
    ],
)
def test_a_gate_that_says_no_uses_no_go_and_leaves_nothing(made: ScriptedCheckout, facts, why) -> None:
    go = approve(made.workspace(), PROBE)
    made.script(outcomes=ADEQUATE, facts=facts)
    with pytest.raises(GateRefused, match=why):
        run_whole_phase(made.workspace(), PROBE, go)
    assert made.generated() == []
    assert on_disk(made) == []
    made.script(outcomes=ADEQUATE)
    assert run_whole_phase(made.workspace(), PROBE, go).rows == 4


@pytest.mark.parametrize("fault", ["crash", "nonsense", "refuse"])
def test_an_engine_that_fails_while_generating_leaves_preflight_only(made: ScriptedCheckout, fault) -> None:
    go = approve(made.workspace(), PROBE)
    made.script(**{fault: "stage1"})
    with pytest.raises(EngineFailed):
        run_whole_phase(made.workspace(), PROBE, go)
    assert on_disk(made) == ["preflight.json"]
    made.script(outcomes=ADEQUATE)
    with pytest.raises(LadderRefused, match="preflight only"):
        run_whole_phase(made.workspace(), PROBE, go)
    with pytest.raises(LadderRefused, match="preflight only"):
        approve(made.workspace(), PROBE, "ask-2")


def test_an_interrupted_phase_is_begun_again_under_a_fresh_go(made: ScriptedCheckout) -> None:
    made.script(crash="stage1")
    first = approve(made.workspace(), PROBE)
    with pytest.raises(EngineFailed):
        run_whole_phase(made.workspace(), PROBE, first)
    made.script(outcomes=ADEQUATE)
    with pytest.raises(LadderRefused, match=r"got 64 probe: preflight only.*--budget 64 --resume"):
        approve(made.workspace(), PROBE, "again")
    with pytest.raises(LadderRefused, match="not authorised to resume"):
        approve(made.workspace(), key_of("base", 64), "other", resume=True)
    fresh = approve(made.workspace(), PROBE, "again", resume=True)
    with pytest.raises(LadderRefused, match="preflight only"):
        run_whole_phase(made.workspace(), PROBE, first)  # the used GO opens nothing
    receipt = run_whole_phase(made.workspace(), PROBE, fresh)
    evidence = load_evidence(made.workspace(), EXPERIMENT)
    assert receipt.go_sha256 == fresh
    assert receipt.resumes == evidence.interrupted_attempts(PROBE)
    assert on_disk(made) == ["preflight.json"]
    assert evidence.next.key == key_of("base", 64)
    assert made.generated() == ["probe@64", "probe@64"]
    with pytest.raises(LadderRefused, match="not authorised to resume"):
        approve(made.workspace(), PROBE, "third", resume=True)


def test_another_root_makes_no_used_go_good_again_and_no_second_history(
    made: ScriptedCheckout, tmp_path: Path
) -> None:
    first = run_whole_phase(made.workspace(), PROBE, approve(made.workspace(), PROBE))
    elsewhere = Workspace(made.folder, {**made.environment, ROOT_VARIABLE: str(tmp_path / "elsewhere")})
    with pytest.raises(GoRefused, match=rf"used already: got {first.go_sha256} in root {first.root_id}"):
        run_whole_phase(elsewhere, PROBE, first.go_sha256)
    fresh = approve(elsewhere, PROBE, "again")
    with pytest.raises(GoRefused, match=rf"begun in another root: got root id .*, need {first.root_id}"):
        run_whole_phase(elsewhere, PROBE, fresh)
    assert made.generated() == ["probe@64"]
    shutil.rmtree(made.root)
    with pytest.raises(GoRefused, match="used already"):
        run_whole_phase(made.workspace(), PROBE, first.go_sha256)
    assert made.generated() == ["probe@64"]


def test_a_go_for_the_first_attempt_does_not_allow_a_second(made: ScriptedCheckout) -> None:
    made.script(crash="stage1")
    used, spare = approve(made.workspace(), PROBE), approve(made.workspace(), PROBE, "spare")
    with pytest.raises(EngineFailed):
        run_whole_phase(made.workspace(), PROBE, used)
    made.script(outcomes=ADEQUATE)
    with pytest.raises(LadderRefused, match="preflight only"):
        run_whole_phase(made.workspace(), PROBE, spare)
    asked = approve(made.workspace(), PROBE, "again", resume=True)
    made.script(crash="stage1")
    with pytest.raises(EngineFailed):
        run_whole_phase(made.workspace(), PROBE, asked)
    late = approve(made.workspace(), PROBE, "third", resume=True)
    with pytest.raises(GoRefused, match=r"was used already"):
        run_whole_phase(made.workspace(), PROBE, asked)
    made.script(outcomes=ADEQUATE)
    receipt = run_whole_phase(made.workspace(), PROBE, late)
    assert len(receipt.resumes) == 2
    assert made.generated() == ["probe@64"] * 3


def test_another_engine_is_no_further_attempt(made: ScriptedCheckout) -> None:
    made.script(crash="stage1")
    with pytest.raises(EngineFailed):
        run_whole_phase(made.workspace(), PROBE, approve(made.workspace(), PROBE))
    made.script(outcomes=ADEQUATE, runtime={"packages": {"scripted": "2"}})
    with pytest.raises(BindingChanged, match=r"packages.scripted changed: got .*'2', need .*'1'"):
        run_whole_phase(made.workspace(), PROBE, approve(made.workspace(), PROBE, "again", resume=True))
    assert made.generated() == ["probe@64"]


def test_a_changed_prompt_or_model_refuses_before_any_engine(made: ScriptedCheckout) -> None:
    go = approve(made.workspace(), PROBE)
    records = made.folder / "data" / "inputs" / EXPERIMENT / "records_base.json"
    good = records.read_bytes()
    records.write_bytes(good.replace(b"base 0", b"base 9"))
    with pytest.raises(InputRefused, match="records_base"):
        run_whole_phase(made.workspace(), PROBE, go)
    records.write_bytes(good)
    tokenizer = made.folder / "models" / "scripted-model" / "tokenizer.json"
    tokenizer.write_bytes(tokenizer.read_bytes() + b"\n")
    with pytest.raises(InputRefused):
        run_whole_phase(made.workspace(), PROBE, go)
    assert made.generated() == []


def test_an_engine_that_is_not_installed_is_one_line(made: ScriptedCheckout) -> None:
    go = approve(made.workspace(), PROBE)
    workspace = run.Workspace(made.folder, {k: v for k, v in made.environment.items() if "ENGINE" not in k})
    with pytest.raises(FitladderError, match=r"make setup"):
        run_whole_phase(workspace, PROBE, go)


HOLDER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from support.approvals import key_of, run_whole_phase
from support.checkout import ScriptedCheckout
made = ScriptedCheckout(Path(sys.argv[2]))
run_whole_phase(made.workspace(), key_of("probe", 64), sys.argv[3])
"""


@pytest.fixture
def other(made: ScriptedCheckout) -> Iterator[tuple[subprocess.Popen, str]]:
    """Another process in the middle of the generation of the same phase."""
    go = approve(made.workspace(), PROBE)
    made.script(outcomes=ADEQUATE, delay_s=30.0)
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(ROOT / "tests"), str(made.folder), go])
    try:
        deadline = time.monotonic() + 60
        while made.generated() == [] and time.monotonic() < deadline:
            time.sleep(0.05)
        assert made.generated() == ["probe@64"]
        yield process, go
    finally:
        process.kill()
        process.wait(30)


def test_the_second_run_is_refused_on_the_held_root(made: ScriptedCheckout, other) -> None:
    process, go = other
    with pytest.raises(RootBusy, match=f"pid {process.pid}"):
        run_whole_phase(made.workspace(), PROBE, go)
    assert made.generated() == ["probe@64"]


def test_an_engine_on_the_device_keeps_every_other_away_and_uses_no_go(made: ScriptedCheckout) -> None:
    go = approve(made.workspace(), PROBE)
    device = made.workspace().device_lock
    device.parent.mkdir(exist_ok=True)
    with (
        hold_lock(device, "engine of another experiment", flow_run_id="run-7"),
        pytest.raises(RootBusy, match=r"gpu-0.*engine of another experiment, flow run run-7"),
    ):
        run_whole_phase(made.workspace(), PROBE, go)
    assert made.generated() == []
    assert run_whole_phase(made.workspace(), PROBE, go).rows == 4


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_phase_takes_its_engine_along_and_stays_preflight_only(
    made: ScriptedCheckout, other, number
) -> None:
    process, go = other
    process.send_signal(number)
    process.wait(30)
    deadline = time.monotonic() + 30
    while _engines(made) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _engines(made) == []
    assert on_disk(made) == ["preflight.json"]
    with pytest.raises(LadderRefused):
        run_whole_phase(made.workspace(), PROBE, go)
    assert made.generated() == ["probe@64"]


def _engines(made: ScriptedCheckout) -> list[int]:
    """Engine processes of this checkout that are alive."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if str(made.generations).encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_scratch_keeps_the_engines_log_after_a_failure(made: ScriptedCheckout) -> None:
    go = approve(made.workspace(), PROBE)
    made.script(refuse="facts")
    with pytest.raises(EngineFailed, match="scripted refusal"):
        run_whole_phase(made.workspace(), PROBE, go)
    kept = list((made.folder / "runs" / ".scratch").glob("*/engine.log"))
    assert len(kept) == 1
    assert json.loads(kept[0].with_suffix(".request.json").read_text())["key"]["phase"] == "probe"
