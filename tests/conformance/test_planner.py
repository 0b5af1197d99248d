"""The planner against the registered history: what the live engines reported comes out of a model config."""

from pathlib import Path

import pytest

from fitladder.canonical import read_json
from fitladder.capacity.block_geometry import parse_geometry
from fitladder.capacity.kv_blocks import blocks_for_kv_tokens, longest_sequence_tokens
from fitladder.capacity.presets import PRESETS
from fitladder.capacity.widest_batch import Cache, plan_capacity

REFERENCE = Path(__file__).parents[3] / "shared/reference"
pytestmark = pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"no published data at {REFERENCE}")

AUDITS = [
    ("capacity_fit/scientific_smoke_49k_termination_audit.json", 49_152),
    ("exact_cudagraph/scientific_smoke_49k_termination_audit.json", 49_152),
    ("exact_cudagraph/scientific_smoke_61k_termination_audit.json", 61_440),
]


@pytest.mark.parametrize(("audit", "budget"), AUDITS)
def test_every_published_fit(audit: str, budget: int) -> None:
    published = read_json(REFERENCE / audit)["capacity_fit"]
    manifest = read_json(REFERENCE / "inputs/prompt_manifest.json")
    longest = max(prompt["prompt_tokens"] for prompt in manifest["arms"]["base"])
    geometry = parse_geometry(PRESETS["qwen3.5-4b"], where="qwen3.5-4b")
    block = geometry.block_size_tokens()
    blocks = blocks_for_kv_tokens(published["live_kv_cache_tokens"], 128, 65_536)
    cache = Cache(block, geometry.mamba_groups, blocks, 65_536)
    plan = plan_capacity(
        cache, longest_sequence_tokens(longest, budget, 2, 512), max_num_batched_tokens=32_768
    )
    assert block == published["block_size_tokens"]
    assert plan.max_num_seqs == published["max_num_seqs"]
    assert plan.tokens.rounded_tokens_per_sequence == published["rounded_tokens_per_sequence"]
    assert plan.tokens.required_tokens == published["required_cache_tokens"]
    assert plan.tokens.margin_tokens == published["cache_margin_tokens"]
    assert plan.tokens.fits is published["pass"]
