"""`fitladder model` and `fitladder rehearse` as typed: exit codes, one-line refusals, JSON for programs."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from fitladder.cli.main import main
from fitladder.errors import RootBusy
from fitladder.files.lock import hold_lock
from fitladder.phase.device_lock import share_device

ROOT = Path(__file__).parents[3]
SMALL = "smollm2_135m_cpu_rehearsal"


class Run(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def fitladder(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Run]:
    """The command line at the root of this checkout, without the second that a new interpreter takes."""

    def run(*words: str, **environment: str) -> Run:
        with monkeypatch.context() as here:
            here.chdir(ROOT)
            here.setattr(sys, "argv", ["fitladder", *words])
            for name in ("FITLADDER_ENGINE_COMMAND", "FITLADDER_ENGINE_PYTHON"):
                here.delenv(name, raising=False)
            for name, value in environment.items():
                here.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        return Run(int(ended.value.code or 0), *capsys.readouterr())

    return run


def test_weightless_folder_and_its_digest(fitladder, tmp_path):
    out = tmp_path / "model"
    assert fitladder("model", "weightless", "qwen3-4b", "--out", str(out)).returncode == 0
    shown = json.loads(fitladder("model", "digest", str(out), "--json").stdout)
    assert len(shown["folder_sha256"]) == 64
    (out / "config.json").write_text((out / "config.json").read_text() + " ")
    changed = json.loads(fitladder("model", "digest", str(out), "--json").stdout)
    assert changed["folder_sha256"] != shown["folder_sha256"]


@pytest.mark.parametrize("name", [None, "notes.txt"])
def test_a_folder_that_holds_no_model_has_no_digest_to_register(fitladder, tmp_path, name):
    if name:
        (tmp_path / name).write_text("x")
    run = fitladder("model", "digest", str(tmp_path))
    assert (run.returncode, run.stdout) == (4, "")
    assert "need a config.json" in run.stderr


def test_conversion_without_an_engine_environment_is_one_line(fitladder, tmp_path):
    run = fitladder(
        "model",
        "convert",
        "smollm2-135m",
        "--out",
        str(tmp_path / "m"),
        "--engine-python",
        str(tmp_path / "no"),
    )
    assert run.returncode == 12
    assert run.stderr.count("\n") == 1
    assert "make setup" in run.stderr
    assert not (tmp_path / "m").exists()


def test_a_converter_that_answers_nothing_is_one_line(fitladder, tmp_path):
    run = fitladder(
        "model", "convert", "smollm2-135m", "--out", str(tmp_path / "m"), "--engine-python", "/bin/false"
    )
    assert run.returncode == 12
    assert "ended with 1" in run.stderr


def test_rehearsal_exit_codes_and_report(fitladder, tmp_path):
    engine = f"{sys.executable} {ROOT / 'tests/scripted/engine.py'}"
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"facts": {"engine_version": "0.32.0"}}))
    out = tmp_path / "report.json"
    words = ("rehearse", SMALL, "--rung=384", "--model=smollm2-135m", "--tokens=8")
    good = fitladder(*words, f"--out={out}", "--json", FITLADDER_ENGINE_COMMAND=f"{engine} {script}")
    assert good.returncode == 0, good.stderr
    assert json.loads(good.stdout) == json.loads(out.read_text())
    assert json.loads(good.stdout)["go_able"] is True
    assert f"building the engine of {SMALL} at 384, 12 wide, dummy weights: at most 1800 s" in good.stderr
    bad = fitladder(*words, FITLADDER_ENGINE_COMMAND=engine)
    assert bad.returncode == 5
    assert "engine_version" in bad.stderr
    assert "not GO-able" in bad.stdout


def test_a_rehearsal_stands_beside_rehearsals_and_never_beside_a_phase(tmp_path):
    lock = tmp_path / "runs" / ".gpu-0.lock"
    with (
        share_device(lock),
        share_device(lock),
        pytest.raises(RootBusy),
        hold_lock(lock, "engine of a phase"),
    ):
        pass
    with (
        hold_lock(lock, "engine of a phase"),
        pytest.raises(RootBusy, match="engine of a phase"),
        share_device(lock),
    ):
        pass
    with share_device(lock):
        pass


def test_rehearse_is_refused_in_one_line_while_a_phase_has_the_device(fitladder):
    slot = "test-of-rehearse"
    lock = ROOT / "runs" / f".{slot}.lock"
    lock.parent.mkdir(exist_ok=True)
    try:
        with hold_lock(lock, "engine of a phase"):
            run = fitladder("rehearse", SMALL, "--rung=384", "--model=smollm2-135m", FITLADDER_GPU_SLOT=slot)
    finally:
        lock.unlink()
    assert run.returncode == 6
    assert run.stderr.count("\n") == 1
    assert "engine of a phase" in run.stderr


def test_rehearsal_of_what_is_not_registered_is_one_line(fitladder):
    for words in (("no_such", "--rung=384"), (SMALL, "--rung=1")):
        run = fitladder("rehearse", *words)
        assert run.returncode in (2, 3)
        assert run.stderr.count("\n") == 1
