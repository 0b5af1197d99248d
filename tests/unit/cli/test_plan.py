"""`fitladder plan` as a user types it: figures, refusals in one line, and exit codes."""

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fitladder.capacity.presets import PRESETS
from fitladder.cli import main as cli
from fitladder.records.engine_facts import EngineFacts

RUNG = ["--budget", "49152", "--prompt-max", "1060", "--answer", "512"]
LIVE = ["--model", "qwen3.5-4b", "--blocks", "1949"]
PROMISED = {
    "block_size_tokens",
    "blocks_per_sequence",
    "pool_blocks",
    "kv_cache_size_tokens",
    "max_num_seqs",
    "capture_sizes",
    "uncovered_widths_if_implicit",
    "margin_blocks",
}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fitladder", "plan", *words])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        return code, *capsys.readouterr()

    return call


def preflight(**changes: Any) -> dict[str, Any]:
    facts = {
        "engine": "vllm",
        "engine_version": "0.24.0",
        "device": "cuda",
        "device_name": "a GPU",
        "max_model_len_tokens": 65_536,
        "max_num_seqs": 19,
        "max_num_batched_tokens": 32_768,
        "block_size_tokens": 528,
        "num_blocks": 1_949,
        "null_blocks": 1,
        "mamba_groups": 3,
        "kv_cache_size_tokens": 997_888,
        "max_concurrency": "15.2265625",
        "capture_requested": [1, 2, 4, 8, 16, 19],
        "capture_max_requested": 19,
        "capture_resolved": [1, 2, 4, 8, 16, 19],
        "graph_mode": "FULL_AND_PIECEWISE",
        "decode_graph_mode": "FULL",
        "has_full_graphs": True,
        "enforce_eager": False,
        "enable_prefix_caching": False,
        "async_scheduling": False,
        "engine_seed": 0,
        "dtype": "bfloat16",
        "requested_args": {},
        "resolved_args": {},
        "load_s": 1.5,
    }
    return facts | changes


def test_json_holds_what_programs_are_promised(run: Any) -> None:
    code, out, _ = run(*LIVE, *RUNG, "--json")
    plan = json.loads(out)
    assert code == 0
    assert set(plan) >= PROMISED
    assert (plan["block_size_tokens"], plan["pool_blocks"], plan["kv_cache_size_tokens"]) == (
        528,
        1_949,
        997_888,
    )
    assert (plan["max_num_seqs"], plan["capture_sizes"]) == (19, [1, 2, 4, 8, 16, 19])
    assert plan["uncovered_widths_if_implicit"] == [17, 18, 19]
    assert plan["pool_is_predicted"] is False


def test_the_second_rung(run: Any) -> None:
    _, out, _ = run(*LIVE, "--budget", "61440", "--prompt-max", "1060", "--json")
    assert json.loads(out)["max_num_seqs"] == 15


def test_kv_tokens_are_as_good_as_blocks(run: Any) -> None:
    _, out, _ = run("--model", "qwen3.5-4b", "--kv-tokens", "996864", *RUNG, "--json")
    assert json.loads(out)["pool_blocks"] == 1_947


def test_a_width_that_does_not_fit_exits_5_with_what_does(run: Any) -> None:
    code, out, err = run(*LIVE, *RUNG, "--max-num-seqs", "64", "--sequences", "48")
    assert (code, out) == (5, "")
    assert err == "fitladder: 48 sequences need 2.5x the pool; 19 fit; capture list 1 2 4 8 16 19\n"


def test_the_table_names_what_an_implicit_list_leaves(run: Any) -> None:
    code, out, _ = run(*LIVE, *RUNG, "--max-num-seqs", "19", "--sequences", "48")
    assert code == 0
    assert "19 sequences fit" in out
    assert "leaves 17-19 uncovered" in out
    assert "spaced admission" in out


@pytest.mark.parametrize(
    ("words", "title", "first"),
    [
        (("--max-num-seqs", "5"), "max_num_seqs 5 fits; 19 at once is the most", "256,080 of 997,888"),
        (
            ("--max-num-seqs", "64", "--sequences", "5"),
            "max_num_seqs 64 fits for 5 sequences; 19 at once is the most",
            "256,080 of 997,888",
        ),
        (("--max-num-seqs", "19"), "19 sequences fit, and no more", "50,726 tokens"),
    ],
)
def test_a_width_that_fits_is_answered_first(
    run: Any, words: tuple[str, ...], title: str, first: str
) -> None:
    code, out, _ = run(*LIVE, *RUNG, *words)
    lines = out.splitlines()
    assert (code, lines[0].strip()) == (0, title)
    assert first in lines[4]


def test_a_width_that_fits_has_figures_of_its_own_for_programs(run: Any) -> None:
    asked = json.loads(run(*LIVE, *RUNG, "--max-num-seqs", "5", "--json")[1])["asked"]
    assert (asked["max_num_seqs"], asked["active_seqs"]) == (5, 5)
    assert (asked["tokens"]["required_tokens"], asked["blocks"]["margin_blocks"]) == (5 * 51_216, 1_948 - 500)
    assert (asked["capture_sizes"], asked["uncovered_widths_if_implicit"]) == ([1, 2, 4, 5], [5])
    assert json.loads(run(*LIVE, *RUNG, "--json")[1])["asked"] is None


def test_a_predicted_pool_shows_its_parts(run: Any) -> None:
    _, out, _ = run("--model", "qwen3.5-4b", "--gpu", "rtx6000ada", *RUNG)
    for words in ("predicted", "memory: weights", "memory: activations", "memory: reserve"):
        assert words in out


@pytest.mark.parametrize("nested", [True, False])
def test_a_preflight_decides(run: Any, tmp_path: Path, nested: bool) -> None:
    path = tmp_path / "preflight.json"
    path.write_text(json.dumps({"engine": preflight(), "key": {}} if nested else preflight()))
    code, out, _ = run("--preflight", str(path), *RUNG, "--json")
    assert code == 0
    assert json.loads(out)["max_num_seqs"] == 19


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kv_cache_size_tokens": 300_000}, "inconsistent"),
        ({"num_blocks": 2_000}, "as 2000 blocks give"),
        ({"block_size_tokens": None}, "block_size_tokens"),
        ({"num_blocks": "1949"}, "num_blocks"),
        ({"max_concurrency": "much"}, "max_concurrency"),
        ({"null_blocks": 0}, "null_blocks"),
    ],
)
def test_a_preflight_that_contradicts_itself(
    run: Any, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    path = tmp_path / "preflight.json"
    path.write_text(json.dumps(preflight(**changes)))
    code, _, err = run("--preflight", str(path), *RUNG)
    assert code in (4, 5)
    assert words in err
    assert err.count("\n") == 1


def test_a_preflight_of_another_model(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "preflight.json"
    path.write_text(json.dumps(preflight()))
    code, _, err = run("--preflight", str(path), "--model", "qwen3-4b", *RUNG)
    assert code == 4
    assert "disagree on the block size: got 528 live, need 16" in err


def test_a_model_folder(run: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(PRESETS["qwen3.5-4b"]))
    for place in (tmp_path, tmp_path / "config.json"):
        _, out, _ = run("--model", str(place), "--blocks", "1949", *RUNG, "--json")
        assert json.loads(out)["max_num_seqs"] == 19


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--model", "nope", "--gpu", "h200", *RUNG], 4, "no such model"),
        (["--model", "qwen3-4b", "--gpu", "abacus", *RUNG], 2, "no such GPU"),
        (["--model", "qwen3-4b", *RUNG], 2, "no pool to plan with"),
        (RUNG, 2, "nothing to plan"),
        ([*LIVE, "--budget", "49152", "--prompt-max", "0"], 5, "longest prompt"),
        ([*LIVE, "--budget", "65000", "--prompt-max", "1060"], 5, "exceeds max_model_len"),
        ([*LIVE, *RUNG, "--max-num-seqs", "0"], 2, "--max-num-seqs"),
        ([*LIVE, *RUNG, "--max-model-len", "300000"], 4, "--max-model-len"),
        (["--model", "qwen3.5-4b", "--blocks", "1949", "--kv-tokens", "996864", *RUNG], 5, "contradict"),
        (["--model", "missing/config.json", "--blocks", "5", *RUNG], 4, "missing/config.json"),
    ],
)
def test_refusals_are_one_line_and_a_code(run: Any, words: list[str], code: int, message: str) -> None:
    found, out, err = run(*words)
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1


def test_facts_in_these_tests_are_engine_facts() -> None:
    assert EngineFacts.model_validate_json(json.dumps(preflight())).num_blocks == 1_949


def test_under_a_second_from_the_command_line() -> None:
    program = "import sys; sys.argv[0] = 'fitladder'; from fitladder.cli.main import main; main()"
    command = [sys.executable, "-c", program, "plan", *LIVE, *RUNG, "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1
    )  # processor, not wall: CI is shared


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--max-model-len", "0"), 2, "--max-model-len: got 0"),
        (("--max-num-batched-tokens", "0"), 2, "--max-num-batched-tokens: got 0"),
        (("--sequences", "1000000000"), 2, "need at most 10000"),
        (("--gpu", "h200", "--device", "cpu"), 2, "--gpu with --device cpu"),
        (("--blocks", "10000000000000"), 5, "pool blocks: got 10000000000000, need at most"),
        (
            ("--max-num-seqs", "19", "--max-num-batched-tokens", "18"),
            5,
            "need at most max_num_batched_tokens",
        ),
    ],
)
def test_absurd_wishes_are_one_line(run: Any, words: tuple[str, ...], code: int, message: str) -> None:
    got, out, err = run(*LIVE, *RUNG, *words)
    assert (got, out, err.count("\n")) == (code, "", 1)
    assert message in err


def test_no_more_sequences_than_a_step_may_schedule(run: Any) -> None:
    _, out, _ = run(*LIVE, *RUNG, "--max-num-batched-tokens", "10", "--json")
    assert json.loads(out)["max_num_seqs"] == 10
