"""Our arithmetic against vLLM's own code: a seeded sample, and by `make nightly` the whole product.

Families x tensor parallel size x cache dtype x block size x prefix caching x batch budget. Every group,
block, page and number of blocks must be equal, or both refuse. `FITLADDER_VLLM_SOURCES` names another
release's Python sources (0.24's, which `make nightly` fetches); without it the installed build's are asked.
"""

import itertools
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from fitladder.capacity.config_fields import read_text_fields
from fitladder.capacity.engine_layout import EngineArguments, lay_out_cache
from fitladder.capacity.rope_scaling import longest_context
from fitladder.capacity.vllm_rules import find_rules
from fitladder.cli import main as cli
from fitladder.cli.exact_layout import ask_vllm
from fitladder.errors import InputRefused

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("FITLADDER_ENGINE_PYTHON", ROOT / ".venv-vllm/bin/python"))
SOURCES = os.environ.get("FITLADDER_VLLM_SOURCES")
WHOLE = bool(os.environ.get("FITLADDER_WHOLE_PRODUCT"))
CONFIGS: dict[str, dict[str, Any]] = json.loads((ROOT / "tests/golden/vllm_layouts/configs.json").read_text())
PARTIAL = ("vision", "rope", "fp8")  # recorded, but no whole config of a model
FAMILIES = sorted(name for name in CONFIGS if not any(word in name for word in PARTIAL))
POOL_BYTES = 40 << 30
LENGTHS = (4_096, 65_536, 131_072)
SEED, SAMPLED = 20_261_207, 8
ARGUMENTS = (
    ("tensor_parallel_size", (1, 2, 4, 8)),
    ("kv_cache_dtype", ("auto", "fp8")),
    ("block_size", (None, 32, 64)),
    ("enable_prefix_caching", (True, False)),
    ("max_num_batched_tokens", (2_048, 8_192, 32_768)),
)
PRODUCT = [
    dict(zip((name for name, _ in ARGUMENTS), values, strict=True))
    for values in itertools.product(*(values for _, values in ARGUMENTS))
]
pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not PYTHON.is_file(), reason="no engine environment: run `make setup`"),
]


def ours(config: dict[str, Any], arguments: dict[str, Any], version: str) -> dict[str, Any]:
    rules = find_rules(version)
    try:
        longest = longest_context(read_text_fields(config, "config.json")[1], rules).default_tokens
        given = EngineArguments(
            rules=rules,
            max_model_len_tokens=longest,
            max_num_batched_tokens=arguments["max_num_batched_tokens"],
            tensor_parallel_size=arguments["tensor_parallel_size"],
            cache_dtype=arguments["kv_cache_dtype"],
            block_size_tokens=arguments["block_size"],
            prefix_caching=arguments["enable_prefix_caching"],
        )
        layout = lay_out_cache(config, given, where="config.json")
    except InputRefused as error:
        return {"refused": str(error)}
    groups = [
        [group.layers, group.spec.block_tokens, group.bytes_per_block, group.spec.reach_tokens]
        for group in layout.groups
    ]
    return {
        "max_model_len_tokens": longest,
        "in_flight_tokens": layout.in_flight_tokens,
        "groups": sorted(groups),
        "block_bytes": layout.block_bytes,
        "pool_blocks": POOL_BYTES // layout.block_bytes,
        "blocks": {str(length): sorted(layout.blocks_by_group(length)) for length in LENGTHS},
    }


def theirs(result: dict[str, Any]) -> dict[str, Any]:
    if "refused" in result:
        return {"refused": result["refused"]}
    names = ("layers", "block_tokens", "bytes_per_block", "reach_tokens")
    return {
        "max_model_len_tokens": result["max_model_len_tokens"],
        "in_flight_tokens": result["in_flight_tokens"],
        "groups": sorted([group[name] for name in names] for group in result["groups"]),
        "block_bytes": result["block_bytes"],
        "pool_blocks": result["pool_blocks"],
        "blocks": {length: sorted(blocks) for length, blocks in result["blocks"].items()},
    }


def differences(cells: list[tuple[str, dict[str, Any]]], folder: Path, timeout_s: float) -> list[str]:
    jobs = []
    for model, arguments in cells:
        place = folder / model
        place.mkdir(exist_ok=True)
        (place / "config.json").write_text(json.dumps(CONFIGS[model]))
        job = {"folder": str(place), "lengths": LENGTHS, "memory_bytes": POOL_BYTES, "arguments": arguments}
        jobs.append(job)
    sources = Path(SOURCES) if SOURCES else None
    found, equal, refused = [], 0, 0
    for (model, arguments), result in zip(
        cells, ask_vllm(PYTHON, jobs, sources=sources, timeout_s=timeout_s), strict=True
    ):
        mine, own = ours(CONFIGS[model], arguments, result["vllm"]), theirs(result)
        both_refuse = "refused" in mine and "refused" in own
        equal, refused = equal + (mine == own), refused + both_refuse
        if mine != own and not both_refuse:
            found.append(f"{model} {arguments}: {mine} against {own}")
    print(f"vLLM {result['vllm']}: {equal} equal, {refused} refused by both, {len(found)} different")
    assert equal > 0 or len(cells) == refused
    return found


@pytest.mark.skipif(WHOLE, reason="the whole product is asked instead")
@pytest.mark.timeout(600)
def test_a_seeded_sample_is_laid_out_as_vllm_does(tmp_path: Path) -> None:
    cells = random.Random(SEED).sample(list(itertools.product(FAMILIES, PRODUCT)), SAMPLED)
    assert differences(cells, tmp_path, timeout_s=580) == []


@pytest.mark.skipif(not WHOLE, reason="asked by `make nightly`")
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("model", FAMILIES)
def test_the_whole_product_is_laid_out_as_vllm_does(model: str, tmp_path: Path) -> None:
    assert differences([(model, arguments) for arguments in PRODUCT], tmp_path, timeout_s=7_000) == []


@pytest.mark.skipif(WHOLE, reason="the whole product is asked instead")
@pytest.mark.timeout(600)
def test_exact_plans_what_our_rules_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """OLMo 3 with the GPU lock's rules is refused; vLLM itself lays it out as the CPU build's rules do."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["olmo-3-7b"]))
    command = ["fitladder", "plan", "--model", str(tmp_path), "--budget", "24576", "--prompt-max", "1060"]
    plans = []
    for words in (["--exact", "--engine-python", str(PYTHON)], ["--vllm-version", "0.32"]):
        monkeypatch.setattr(sys, "argv", [*command, "--blocks", "60000", "--json", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code
        plans.append(json.loads(capsys.readouterr().out))
    exact, ruled = plans
    assert (exact["exact"], exact["vllm"], ruled["exact"]) == (True, "0.32.0", False)
    assert sorted(map(json.dumps, exact["layout"]["groups"])) == sorted(
        map(json.dumps, ruled["layout"]["groups"])
    )
    assert exact["layout"]["in_flight_tokens"] == ruled["layout"]["in_flight_tokens"]
    assert exact["max_num_seqs"] == ruled["max_num_seqs"]
