"""`fitladder plan` under an engine's arguments: windows, scaled contexts, fp8 caches, ranks, releases."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fitladder.cli import main as cli

ROOT = Path(__file__).parents[3]
CONFIGS: dict[str, dict[str, Any]] = json.loads((ROOT / "tests/golden/vllm_layouts/configs.json").read_text())
SIZES = ["--budget", "24576", "--prompt-max", "1060"]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    def call(model: str, *words: str, **changes: Any) -> tuple[int, str, str]:
        (tmp_path / "config.json").write_text(json.dumps(CONFIGS[model] | changes))
        monkeypatch.setattr(sys, "argv", ["fitladder", "plan", "--model", str(tmp_path), *SIZES, *words])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        return code, *capsys.readouterr()

    return call


def test_a_scaled_context_is_allowed_as_vllm_derives_it(run: Any) -> None:
    long = ("--budget", "98304", "--max-model-len", "131072", "--blocks", "20000", "--json")
    for model in ("rope-a", "rope-b"):
        code, out, _ = run(model, *long)
        assert (code, json.loads(out)["max_model_len_tokens"]) == (0, 131_072)
    code, _, err = run("qwen3-8b", *long)
    assert (code, err.count("\n")) == (4, 1)
    assert "need at most the model's 40960, from max_position_embeddings as vLLM 0.24 derives it" in err
    code, _, err = run("rope-a", *long, "--vllm-version", "0.32.0")
    assert code == 4
    assert "need at most the model's 32768" in err


@pytest.mark.parametrize(
    "pool", [("--blocks", "765"), ("--kv-tokens", "1114112"), ("--blocks", "765", "--kv-tokens", "1114112")]
)
def test_a_checkpoint_with_an_fp8_cache_has_the_block_that_its_engine_reported(
    run: Any, pool: tuple[str, ...]
) -> None:
    code, out, _ = run("qwen3.5-27b-fp8", *pool, "--json")
    plan = json.loads(out)
    assert (code, plan["block_size_tokens"], plan["blocks_per_sequence"]) == (0, 1_568, 20)
    assert (plan["pool_blocks"], plan["max_num_seqs"]) == (765, 38)


def test_windows_are_counted_as_held_and_the_release_is_named(run: Any) -> None:
    code, out, _ = run("gpt-oss-20b", "--blocks", "60000", "--max-num-batched-tokens", "8192")
    assert code == 0
    assert "12 full, 12 sliding" in out
    assert "rules of vLLM 0.24" in out
    held = {}
    for version in ("0.24", "0.32"):
        words = ("--blocks", "60000", "--max-num-batched-tokens", "8192", "--vllm-version", version, "--json")
        held[version] = json.loads(run("gpt-oss-20b", *words)[1])["blocks_per_sequence"]
    total = -(-(24_576 + 1_060 + 2 + 512) // 16)
    assert held == {"0.24": total + 521, "0.32": total + 1_033}


def test_ranks_and_dtype_reach_the_block(run: Any) -> None:
    words = ("--blocks", "900", "--json")
    sizes = [
        json.loads(run("qwen3-next-80b", *words, "--tensor-parallel-size", ranks)[1])["block_size_tokens"]
        for ranks in ("1", "2", "4", "8")
    ]
    assert sizes == [544, 544, 272, 144]
    fp8 = json.loads(run("qwen3-next-80b", *words, "--kv-cache-dtype", "fp8")[1])
    assert fp8["block_size_tokens"] == 1_072
    cached = json.loads(run("qwen3-next-80b", *words, "--enable-prefix-caching")[1])
    assert (cached["mamba_groups"], fp8["mamba_groups"]) == (6, 3)
    plain = json.loads(run("qwen3-8b", *words, "--block-size", "64")[1])
    assert (plain["block_size_tokens"], plain["vllm"], plain["exact"]) == (64, "0.24", False)


def test_the_kv_rule_decides_the_width(run: Any) -> None:
    widths = {
        rule: json.loads(run("qwen3.5-27b-fp8", "--blocks", "765", "--kv-rule", rule, "--json")[1])[
            "max_num_seqs"
        ]
        for rule in ("token", "both", "block")
    }
    assert widths == {"token": 41, "both": 38, "block": 38}
    code, _, err = run("qwen3.5-27b-fp8", "--blocks", "765", "--kv-rule", "block", "--max-num-seqs", "39")
    assert (code, "39 sequences need 1.0x the pool; 38 fit" in err) == (5, True)


@pytest.mark.parametrize(
    ("model", "words", "code", "message"),
    [
        ("olmo-3-7b", (), 4, "--exact"),
        ("qwen3-8b", ("--vllm-version", "0.25.1"), 4, "vLLM version: got 0.25.1"),
        ("qwen3-8b", ("--tensor-parallel-size", "3"), 4, "num_attention_heads"),
        ("qwen3-8b", ("--tensor-parallel-size", "0"), 2, "--tensor-parallel-size: got 0"),
        ("gpt-oss-20b", ("--sequences", "4"), 2, "leave --sequences out"),
        ("qwen3-8b", ("--exact", "--device", "cpu"), 2, "--exact with --device cpu"),
        ("qwen3-8b", ("--exact", "--engine-python", "no/python"), 12, "no Python of the engine environment"),
    ],
)
def test_refusals_are_one_line(run: Any, model: str, words: tuple[str, ...], code: int, message: str) -> None:
    found, out, err = run(model, "--blocks", "60000", *words)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert message in err


def test_no_pool_is_predicted_for_ranks_or_for_a_family_without_a_memory_model(run: Any) -> None:
    code, _, err = run("qwen3-8b", "--gpu", "h200", "--tensor-parallel-size", "2")
    assert (code, "--blocks or --kv-tokens" in err) == (2, True)
    code, _, err = run("gpt-oss-20b", "--gpu", "h200")
    assert (code, "no memory of this model is predicted" in err) == (2, True)
