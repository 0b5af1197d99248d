"""`fitladder gate` as a user types it: recorded facts judged again, refusals in one line, exit codes."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fitladder.cli import main as cli

REPOSITORY = Path(__file__).parents[3]
REHEARSAL = "smollm2_135m_cpu_rehearsal"
FACTS: dict[str, Any] = {
    "engine": "vllm",
    "engine_version": "0.32.0",
    "device": "cpu",
    "device_name": "cpu",
    "max_model_len_tokens": 1_152,
    "max_num_seqs": 12,
    "max_num_batched_tokens": 2_048,
    "block_size_tokens": 128,
    "num_blocks": 109,
    "null_blocks": 1,
    "mamba_groups": 0,
    "kv_cache_size_tokens": 13_952,
    "max_concurrency": "12.11111111111111",
    "capture_requested": None,
    "capture_max_requested": None,
    "capture_resolved": [],
    "graph_mode": "NONE",
    "decode_graph_mode": "NONE",
    "has_full_graphs": False,
    "enforce_eager": True,
    "enable_prefix_caching": False,
    "async_scheduling": False,
    "engine_seed": 0,
    "dtype": "float32",
    "requested_args": {},
    "resolved_args": {},
    "load_s": 5.5,
}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(REPOSITORY)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fitladder", "gate", *words])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        return code, *capsys.readouterr()

    return call


def _file(tmp_path: Path, document: Any) -> str:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_recorded_facts_pass(run: Any, tmp_path: Path) -> None:
    code, out, _ = run(REHEARSAL, "--rung", "384", "--facts", _file(tmp_path, FACTS), "--json")
    found = json.loads(out)
    assert (code, found["passed"]) == (0, True)
    assert [gate["name"] for gate in found["gates"]] == ["live_settings", "context", "kv_fit", "cuda_graphs"]
    assert found["not_judged_here"] == ["prompt_identity"]  # never claimed where nothing is rendered
    assert found["gates"][2]["numbers"]["active_sequences"] == 12
    code, out, _ = run(REHEARSAL, "--rung", "576", "--facts", _file(tmp_path, FACTS), "--phase", "base")
    assert code == 0
    assert "required_blocks" in out


def test_a_preflight_is_taken_for_its_engine(run: Any, tmp_path: Path) -> None:
    path = _file(tmp_path, {"schema_version": 1, "engine": FACTS})
    assert run(REHEARSAL, "--rung", "384", "--facts", path, "--json")[0] == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_blocks": 98}, "num_blocks is not the registered one"),
        ({"block_size_tokens": None}, "reports no block size"),
        ({"max_num_seqs": 64}, "max_num_seqs is not the registered one: got 64, need 12"),
        ({"capture_resolved": [1, 2], "enforce_eager": True}, "graphs were captured"),
        ({"max_concurrency": "33.0"}, "13952 KV tokens beside 33.0x"),
    ],
)
def test_a_refusal_is_one_line_and_exit_5(run: Any, tmp_path: Path, change: Any, words: str) -> None:
    code, out, err = run(REHEARSAL, "--rung", "384", "--facts", _file(tmp_path, {**FACTS, **change}))
    assert (code, out) == (5, "")
    assert words in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--rung", "400"), 2, "need 384 or 576"),
        (("--rung", "384", "--phase", "semantics"), 2, "probe or base or designed"),
    ],
)
def test_words_that_name_nothing(run: Any, tmp_path: Path, words: Any, code: int, says: str) -> None:
    found, _, err = run(REHEARSAL, "--facts", _file(tmp_path, FACTS), *words)
    assert found == code
    assert says in err


@pytest.mark.parametrize(
    ("change", "says"),
    [({"num_blocks": True}, "num_blocks"), ({"mood": "good"}, "mood"), ({"dtype": 1}, "dtype")],
)
def test_facts_that_are_none(run: Any, tmp_path: Path, change: Any, says: str) -> None:
    code, _, err = run(REHEARSAL, "--rung", "384", "--facts", _file(tmp_path, {**FACTS, **change}))
    assert code == 4
    assert f"field {says}" in err


def test_without_its_manifest_nothing_is_judged(run: Any, tmp_path: Path) -> None:
    code, _, err = run(REHEARSAL, "--rung", "384", "--facts", _file(tmp_path, FACTS), "--data", str(tmp_path))
    assert code == 4
    assert "fitladder inputs fetch" in err
