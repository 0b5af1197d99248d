"""`fitladder status` tells the registered history and what is due, as tables and as JSON."""

import json
from pathlib import Path

import pytest

from fitladder import cli

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
