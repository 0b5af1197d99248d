"""A live KV pool that holds every active sequence passes; one that does not is refused with both figures."""

from collections.abc import Callable

import pytest

from fitladder.errors import GateRefused
from fitladder.gates.kv_fit import check_kv_fit
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment

Facts = Callable[..., EngineFacts]
Changed = Callable[..., Experiment]


def _pool(facts: Facts, block: int, tokens: int, length: int = 65_000) -> EngineFacts:
    """A fake engine that logs its concurrency with two decimals; only its token figure is meant."""
    return facts(
        block_size_tokens=block,
        kv_cache_size_tokens=tokens,
        max_model_len_tokens=length,
        max_concurrency=f"{tokens / length:.2f}",
        mamba_groups=0,
        num_blocks=tokens // block + 1,
    )


def _reserving(experiment: Experiment, changed: Changed, width: int) -> Experiment:
    """65,000 tokens a sequence (prompt 100, answer 512, close 2), `width` of them."""
    rung = {"thinking_budget_tokens": 64_386, "max_num_seqs": width, "capture_sizes": None, "deadline_s": 9}
    return changed(experiment, rungs=[rung], longest_prompt_tokens=100)


@pytest.mark.parametrize(("block", "fits"), [(16, 15), (528, 15), (784, 15), (2_096, 14), (7_808, 14)])
def test_kv_pool_of_inflated_blocks_holds_fewer_sequences(
    implicit: Experiment, changed: Changed, facts: Facts, block: int, fits: int
) -> None:
    wide = _reserving(implicit, changed, 15)
    live = _pool(facts, block, 999_936)
    if fits == 15:
        numbers = check_kv_fit(wide, wide.rungs[0], "probe", live, 100).numbers
        assert (numbers["longest_sequence_tokens"], numbers["largest_width"]) == (65_000, 15)
    else:
        with pytest.raises(GateRefused, match=r"got 999936 KV tokens, need 15 x .*; 14 sequences fit"):
            check_kv_fit(wide, wide.rungs[0], "probe", live, 100)


def test_kv_pool_figures_that_contradict_each_other_are_both_shown(
    implicit: Experiment, changed: Changed, facts: Facts
) -> None:
    wide = _reserving(implicit, changed, 2)
    for concurrency in ("33.0", "33.00", "33.0000001"):
        live = facts(max_model_len_tokens=30_000, kv_cache_size_tokens=300_000, max_concurrency=concurrency)
        with pytest.raises(GateRefused, match=r"300000 KV tokens beside 33\.\d+x at 30000.*need 990000"):
            check_kv_fit(wide, wide.rungs[0], "probe", live, 100)


def test_kv_pool_of_a_later_start_decides_for_itself(
    implicit: Experiment, changed: Changed, facts: Facts
) -> None:
    wide = _reserving(implicit, changed, 15)
    first = check_kv_fit(wide, wide.rungs[0], "probe", _pool(facts, 528, 1_000_032), 100)
    assert first.numbers["largest_width"] == 15
    with pytest.raises(GateRefused, match="14 sequences fit"):
        check_kv_fit(wide, wide.rungs[0], "probe", _pool(facts, 528, 940_000), 100)


def test_kv_pool_without_a_block_size_is_refused(exact: Experiment, facts: Facts) -> None:
    with pytest.raises(GateRefused, match="reports no block size"):
        check_kv_fit(exact, exact.rungs[0], "probe", facts(block_size_tokens=None), 990)
    with pytest.raises(GateRefused, match="block size"):
        check_kv_fit(exact, exact.rungs[0], "probe", facts(block_size_tokens=0), 990)


@pytest.mark.parametrize("words", ["", "nan", "inf", "-15.2", "15,2", "1e1", "15.2x", "\u0661\u0665.2"])
def test_concurrency_must_be_a_decimal(exact: Experiment, facts: Facts, words: str) -> None:
    with pytest.raises(GateRefused, match="concurrency"):
        check_kv_fit(exact, exact.rungs[0], "probe", facts(max_concurrency=words), 990)


def test_the_registered_rule_decides(exact: Experiment, changed: Changed, facts: Facts) -> None:
    """At short sequences the token rule promises four times what a hybrid's blocks can hold."""
    rung = {"thinking_budget_tokens": 8_192, "max_num_seqs": 24, "deadline_s": 9}
    rung["capture_sizes"] = (1, 2, 4, 8, 16, 24)
    short = changed(exact, rungs=[rung], sampling__answer_max_tokens=1, longest_prompt_tokens=100)
    live = facts(num_blocks=452, kv_cache_size_tokens=231_424, max_concurrency="3.53125")  # 452 / 128
    record = check_kv_fit(short, short.rungs[0], "probe", live, 100)
    assert record.numbers["token_rule_fits"] is True
    assert record.numbers["block_rule_fits"] is False
    assert record.numbers["largest_width"] == 231_424 // (16 * 528)
    both = changed(short, kv_rule="both")
    with pytest.raises(
        GateRefused,
        match=r"too small by 5 blocks: got 451 usable blocks, need 24 x 19 = 456; 23 sequences fit",
    ):
        check_kv_fit(both, both.rungs[0], "probe", live, 100)


def test_block_and_token_figures_must_describe_one_pool(
    exact: Experiment, changed: Changed, facts: Facts
) -> None:
    both = changed(exact, kv_rule="both")
    check_kv_fit(both, both.rungs[0], "probe", facts(), 990)
    with pytest.raises(GateRefused, match=r"996864 KV tokens beside 1990 blocks of 528, need 1018880"):
        check_kv_fit(both, both.rungs[0], "probe", facts(num_blocks=1_990), 990)


def test_active_sequences_are_never_more_than_there_are_samples(
    exact: Experiment, changed: Changed, facts: Facts
) -> None:
    rung = {**exact.rungs[0].model_dump(), "max_num_seqs": 64, "capture_sizes": (64,)}
    wide = changed(exact, rungs=[rung], records_per_arm=4)
    record = check_kv_fit(wide, wide.rungs[0], "probe", facts(), 990)
    assert record.numbers["active_sequences"] == 16  # 4 records x 4, not 64
    with pytest.raises(GateRefused, match="48 x 50688"):
        check_kv_fit(wide, wide.rungs[0], "base", facts(), 990)


def test_spaced_admission_holds_one_longest_and_says_so(
    exact: Experiment, changed: Changed, facts: Facts
) -> None:
    rung = {**exact.rungs[0].model_dump(), "max_num_seqs": 64, "capture_sizes": (64,)}
    spaced = changed(exact, engine__admission="spaced", rungs=[rung], kv_rule="both")
    numbers = check_kv_fit(spaced, spaced.rungs[0], "base", facts(), 990).numbers
    assert numbers["worst_case_width_checked"] is False
    assert "preemption-free" in str(numbers["policy"])
    assert (numbers["active_sequences"], numbers["resident_sequences_checked"]) == (64, 1)
    tiny = facts(num_blocks=98, kv_cache_size_tokens=50_176, max_concurrency="0.765625")
    with pytest.raises(GateRefused, match="not one sequence fits"):
        check_kv_fit(spaced, spaced.rungs[0], "base", tiny, 990)
