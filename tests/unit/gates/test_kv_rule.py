"""The one KV rule: which figure decides, what is short, how many fit, and that all three callers agree."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fitladder.capacity.kv_blocks import kv_tokens_for_blocks
from fitladder.capacity.kv_rule import KvFit, KvPool, KvRule, decide_kv_fit
from fitladder.errors import GateRefused, RegistrationError
from fitladder.gates.kv_fit import check_kv_fit
from fitladder.phase.expectation import fit_line
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment
from fitladder.records.registry import Registry
from fitladder.registry.feasibility import check_feasible
from fitladder.registry.load import load_registry

ROOT = Path(__file__).parents[3]
LENGTH = 65_536
EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
LONG = "qwen35_4b_verified_macro_long_context_rerun"


def pool_of(block: int, blocks: int | None, groups: int = 0, tokens: int | None = None) -> KvPool:
    """A pool whose token figure is vLLM's own at `LENGTH`."""
    if tokens is None:
        assert blocks is not None
        tokens = kv_tokens_for_blocks(blocks, -(-LENGTH // block) + groups, LENGTH)
    return KvPool(block, groups, tokens, blocks)


def fit_of(pool: KvPool, rule: KvRule, active: int, longest: int = LENGTH, *, spaced: bool = False) -> KvFit:
    return decide_kv_fit(
        pool, rule=rule, spaced=spaced, longest_sequence_tokens=longest, active_sequences=active
    )


def test_block_rule_decides_by_blocks_and_only_records_tokens() -> None:
    pool = pool_of(528, 501)
    fit = fit_of(pool, "block", 4)
    assert (fit.verdict, fit.widest) == ("fits", 4)
    assert fit.blocks is not None
    assert (fit.blocks.required_blocks, fit.usable_blocks, fit.blocks.margin_blocks) == (500, 500, 0)
    assert fit.tokens.margin_tokens == -1_332
    assert fit_of(pool, "block", 5).verdict == "short_of_blocks"
    assert (fit_of(pool, "both", 4).verdict, fit_of(pool, "both", 4).widest) == ("short_of_tokens", 3)


def test_the_null_block_holds_no_sequence() -> None:
    fit = fit_of(pool_of(16, 4_096 * 4), "token", 4)
    assert fit.tokens.fits
    assert (fit.verdict, fit.widest) == ("short_of_blocks", 3)
    one = fit_of(pool_of(16, 4_096), "token", 1)
    assert (one.verdict, one.widest, one.usable_blocks) == ("short_of_blocks", 0, 4_095)
    assert fit_of(pool_of(16, 4_097), "token", 1).verdict == "fits"


def test_the_token_rule_counts_no_mamba_block() -> None:
    pool = KvPool(528, 3, 231_424, 452)
    fit = fit_of(pool, "token", 24, 8_295)
    assert fit.blocks is not None
    assert fit.deciding_blocks is not None
    assert (fit.verdict, fit.blocks.fits, fit.deciding_blocks.required_blocks) == ("fits", False, 384)
    assert fit_of(pool, "block", 24, 8_295).verdict == "short_of_blocks"


def test_spaced_admission_needs_room_for_one() -> None:
    pool = pool_of(528, 501)
    assert fit_of(pool, "both", 400).verdict == "short_of_tokens"
    fit = fit_of(pool, "both", 400, spaced=True)
    assert (fit.verdict, fit.resident_sequences, fit.active_sequences) == ("fits", 1, 400)
    assert fit_of(pool_of(528, 125), "both", 400, spaced=True).verdict == "short_of_tokens"
    assert fit_of(pool_of(528, 125), "block", 400, spaced=True).verdict == "short_of_blocks"


def test_blocks_that_are_not_known_leave_the_block_rule_open() -> None:
    pool = pool_of(528, None, tokens=997_888)
    fit = fit_of(pool, "block", 4)
    assert (fit.verdict, fit.widest, fit.blocks) == ("unknown", None, None)
    assert fit_of(pool, "both", 4).verdict == "fits"
    assert fit_of(pool, "token", 40).verdict == "short_of_tokens"


@pytest.mark.parametrize("blocks", [0, 1])
def test_a_pool_of_the_null_block_alone_shows_no_fit(blocks: int) -> None:
    with pytest.raises(GateRefused, match="no fit can be shown: usable blocks"):
        fit_of(pool_of(16, blocks, tokens=16), "token", 1, 16)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry(ROOT / "params.yaml")


def _callers(registry: Registry, experiment: Experiment, blocks: int, width: int) -> tuple[bool, bool, bool]:
    """Whether gate, plan card and registration check let this width run; the longest prompt is registered."""
    block, rung = 16, experiment.rungs[0]
    length = experiment.engine.max_model_len_tokens
    tokens = kv_tokens_for_blocks(blocks, -(-length // block), length)
    facts = EngineFacts.model_construct(
        block_size_tokens=block,
        num_blocks=blocks,
        null_blocks=1,
        mamba_groups=0,
        kv_cache_size_tokens=tokens,
        max_concurrency=repr(blocks / -(-length // block)),
        max_model_len_tokens=length,
    )
    try:
        check_kv_fit(experiment, rung, "base", facts, experiment.longest_prompt_tokens)
        gate = True
    except GateRefused:
        gate = False
    line = fit_line(experiment, rung, KvPool(block, 0, tokens, blocks), width)
    try:
        check_feasible(registry, experiment, {LONG}, block)
        sound = True
    except RegistrationError:
        sound = False
    return gate, " fit" in line.split(":")[0].split(";")[0], sound


@pytest.mark.parametrize("rule", ["token", "both", "block"])
@pytest.mark.parametrize("admission", ["worst_case", "spaced"])
@pytest.mark.parametrize("more", [0, 1, 2])
def test_gate_plan_card_and_registration_check_agree(
    registry: Registry, changed: Callable[..., Experiment], rule: KvRule, admission: str, more: int
) -> None:
    """The pool is one block short, exact, and one over for one longest, then for four."""
    before = registry.experiment(EXACT)
    for resident in (1, 4):
        each = -(-before.longest_sequence_tokens(before.rungs[0]) // 16)
        blocks = resident * each + more
        experiment = changed(
            before,
            kv_rule=rule,
            engine__admission=admission,
            engine__num_gpu_blocks_override=blocks,
            rungs=[before.rungs[0].model_dump() | {"max_num_seqs": 4, "capture_sizes": (1, 2, 4)}],
        )
        found = _callers(registry, experiment, blocks, 4)
        assert len(set(found)) == 1, (found, resident)
        needs = 1 if admission == "spaced" else 4
        assert found[0] == (blocks - 1 >= needs * each)


def test_the_plan_card_of_a_spaced_rung_says_what_the_gate_checks(
    registry: Registry, changed: Callable[..., Experiment]
) -> None:
    experiment = changed(registry.experiment(EXACT), engine__admission="spaced", kv_rule="both")
    rung = experiment.rungs[0]
    line = fit_line(experiment, rung, KvPool(528, 3, 996_864, 1_947), 48)
    assert line.startswith("48 sequences fit under spaced admission, which needs room for one longest: ")
    assert line.endswith("19 would fit at their longest")
    small = fit_line(experiment, rung, KvPool(528, 3, 25_600, 50), 48)
    assert small == "one longest sequence needs 2.0x the pool; 0 fit"


def test_the_plan_card_under_the_block_rule(registry: Registry, changed: Callable[..., Experiment]) -> None:
    experiment = changed(registry.experiment(EXACT), kv_rule="block")
    rung = experiment.rungs[0]
    known = fit_line(experiment, rung, KvPool(528, 3, 996_864, 1_947), 19)
    assert "(margin 23,760, a record), 1,900 of 1,946 blocks (margin 46); 19 would fit" in known
    unknown = fit_line(experiment, rung, KvPool(528, 0, 997_888, None), 19)
    assert unknown.startswith("19 sequences, decided by blocks: ")
    assert unknown.endswith("blocks are told by the live gate")
