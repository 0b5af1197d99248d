"""`fitladder status` tells the registered history and what is due, as tables and as JSON."""

import json
import time
from pathlib import Path

import pytest
from support.approvals import approve, key_of, run_whole_phase
from support.checkout import EXPERIMENT, ScriptedCheckout, make_scripted_checkout

from fitladder.cli import main as cli

ROOT = Path(__file__).parents[3]


def _run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("FITLADDER_REHEARSAL_ROOT", raising=False)
    monkeypatch.setattr("sys.argv", ["fitladder", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code, capsys.readouterr().err
    return capsys.readouterr().out


def test_the_registered_history_in_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {
        one["experiment_id"]: one
        for one in json.loads(_run(monkeypatch, capsys, "status", "--json"))["experiments"]
    }
    fit = found["qwen35_4b_verified_macro_capacity_fit_rerun"]
    exact = found["qwen35_4b_verified_macro_exact_cudagraph_rerun"]
    assert (fit["state"], fit["next"]["reason"]) == ("stopped", "stopped at 61k preflight only")
    assert [rung["status"] for rung in exact["rungs"]] == ["rejected", "rejected"]
    probe = exact["rungs"][1]["phases"][0]
    assert (
        probe["periodic_loop_contacts"],
        probe["unresolved_cap_contacts"],
        probe["answer_limit_contacts"],
    ) == (40, 8, 4)
    assert exact["next"]["command"] is None
    assert "pass false, selected null" in exact["next"]["reason"]
    assert "preemptions" not in probe  # nobody counted them at the time
    assert found.keys() >= {"smollm2_135m_cpu_rehearsal"}


def test_the_table_names_the_receipt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = _run(monkeypatch, capsys, "status", "qwen35_4b_verified_macro_exact_cudagraph_rerun")
    assert "61da6f616365" in out
    assert "complete, rejected" in out


def _checkout_of_two(folder: Path) -> ScriptedCheckout:
    """One experiment with a complete probe, and another that never began; to be registered."""
    made = make_scripted_checkout(folder / "checkout")
    probe = key_of("probe", 64)
    run_whole_phase(made.workspace(), probe, approve(made.workspace(), probe))
    other = {**made.section, "artifacts": {**made.section["artifacts"], "environment_override": "OTHER_ROOT"}}
    made.document["experiments"]["other_experiment"] = other
    return made


def _run_status(monkeypatch: pytest.MonkeyPatch, made: ScriptedCheckout, words: tuple[str, ...]) -> object:
    """`fitladder status` in that checkout, without a server; returns its exit code."""
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.chdir(made.folder)
    monkeypatch.setattr("sys.argv", ["fitladder", "status", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--check",), 3), (("--json",), 0)])
def test_a_foreign_experiment_hides_no_other(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, ...],
    code: int,
) -> None:
    made = _checkout_of_two(tmp_path)
    made.section["sampling"] = {**made.section["sampling"], "top_k": 21}
    made.register()
    stopped = _run_status(monkeypatch, made, words)
    out = capsys.readouterr().out
    assert stopped == code
    assert "section.sampling.top_k" in out
    assert f"fitladder new NAME --from {EXPERIMENT}" in out
    if "--json" in words:
        found = {one["experiment_id"]: one for one in json.loads(out)["experiments"]}
        assert found["other_experiment"]["source"] == "nothing yet"
        assert "next" not in found[EXPERIMENT]
    else:
        assert f"{EXPERIMENT} (open; foreign to this checkout)" in out
        assert "other_experiment (open; from nothing yet): no phase has run" in out


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_broken_experiment_hides_no_other_and_the_exit_code_says_so(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    words: tuple[str, ...],
) -> None:
    made = _checkout_of_two(tmp_path)
    made.register()
    samples = next(Path(made.root).rglob("samples.parquet"))
    flipped = bytearray(samples.read_bytes())
    flipped[100] ^= 1
    samples.write_bytes(flipped)
    stopped = _run_status(monkeypatch, made, words)
    said = capsys.readouterr()
    assert stopped == 6
    assert said.err.count("\n") == 1
    assert "samples.parquet: SHA-256" in said.err
    if words:
        found = {one["experiment_id"]: one for one in json.loads(said.out)["experiments"]}
        assert "samples.parquet" in found[EXPERIMENT]["broken"]
        assert found["other_experiment"]["source"] == "nothing yet"
    else:
        assert f"{EXPERIMENT} (open; BROKEN)" in said.out
        assert "other_experiment (open; from nothing yet): no phase has run" in said.out


def test_a_server_that_is_away_hides_nothing_that_the_disk_proves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    monkeypatch.setattr("sys.argv", ["fitladder", "status", "qwen35_4b_verified_macro_exact_cudagraph_rerun"])
    began = time.monotonic()
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert time.monotonic() - began < 10
    said = capsys.readouterr()
    assert stop.value.code == 12
    assert "61da6f616365" in said.out
    assert "no answer from the Prefect server" in said.err


@pytest.mark.parametrize("named", ["another's", "a link", "relative"])
def test_a_root_that_may_not_be_used_is_no_missing_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, named: str
) -> None:
    made = make_scripted_checkout(tmp_path / "checkout")
    other = {**made.section, "artifacts": {**made.section["artifacts"], "environment_override": "OTHER_ROOT"}}
    made.document["experiments"]["other_experiment"] = other
    made.register()
    link = tmp_path / "link"
    link.symlink_to(tmp_path, target_is_directory=True)
    roots = {"another's": str(made.root), "a link": str(link / "root"), "relative": "runs/root"}
    for name, value in (made.environment | {"OTHER_ROOT": roots[named]}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.chdir(made.folder)
    monkeypatch.setattr("sys.argv", ["fitladder", "status", "other_experiment"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    said = capsys.readouterr()
    assert (stop.value.code, said.err.count("\n")) == (6, 1)
    assert "fitladder launch" not in said.out
