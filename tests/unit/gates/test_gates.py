"""Every live gate: the registered engines pass, and each way in which one may not be them is refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from fitladder.errors import GateRefused
from fitladder.gates.all_gates import PromptFacts, run_gates
from fitladder.gates.context import check_context
from fitladder.gates.cuda_graphs import check_cuda_graphs
from fitladder.gates.kv_fit import check_kv_fit
from fitladder.gates.live_settings import check_live_settings
from fitladder.gates.prompt_identity import check_prompt_identity
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment
from fitladder.records.settings import Rung

Facts = Callable[..., EngineFacts]
Changed = Callable[..., Experiment]


def test_the_registered_engine_passes_all_five(
    exact: Experiment, facts: Facts, prompts: list[PromptFacts]
) -> None:
    records = run_gates(exact, exact.rungs[0], "probe", facts(), prompts, frozen=prompts)
    assert [record.name for record in records] == [
        "live_settings",
        "prompt_identity",
        "context",
        "kv_fit",
        "cuda_graphs",
    ]
    assert all(record.passed for record in records)
    assert records[3].numbers["margin_tokens"] == 33_792
    assert records[3].numbers["largest_width"] == 19


@pytest.mark.parametrize(
    ("field", "live"),
    [
        ("max_model_len_tokens", 32_768),
        ("max_num_seqs", 64),
        ("max_num_batched_tokens", 8_192),
        ("engine_seed", 1),
        ("dtype", "float16"),
        ("enable_prefix_caching", True),
        ("async_scheduling", True),
        ("enforce_eager", True),
        ("device", "cpu"),
    ],
)
def test_a_live_setting_that_differs(exact: Experiment, facts: Facts, field: str, live: Any) -> None:
    with pytest.raises(GateRefused, match=rf"{field} is not the registered one: got {live}, need"):
        check_live_settings(exact, exact.rungs[0], facts(**{field: live}))


def test_a_registered_version_and_pool_are_compared(
    exact: Experiment, changed: Changed, facts: Facts
) -> None:
    pinned = changed(exact, engine__vllm_version="0.24.0", engine__num_gpu_blocks_override=1_947)
    assert check_live_settings(pinned, pinned.rungs[0], facts()).numbers["engine_version"] == "0.24.0"
    with pytest.raises(GateRefused, match="engine_version"):
        check_live_settings(pinned, pinned.rungs[0], facts(engine_version="0.25.0"))
    with pytest.raises(GateRefused, match="num_blocks"):
        check_live_settings(pinned, pinned.rungs[0], facts(num_blocks=1_949))


def test_prompt_identity_names_prompt_and_field(prompts: list[PromptFacts]) -> None:
    assert check_prompt_identity(prompts, prompts, 12).numbers["prompts"] == 12
    longer = [*prompts[:3], replace(prompts[3], prompt_tokens=974), *prompts[4:]]
    with pytest.raises(GateRefused, match=r"prompt r-003: prompt_tokens drifted: got 974, need 973"):
        check_prompt_identity(longer, prompts, 12)
    other = [*prompts[:3], replace(prompts[3], rendered_sha256="f" * 64), *prompts[4:]]
    with pytest.raises(GateRefused, match="prompt r-003: rendered_sha256 drifted"):
        check_prompt_identity(other, prompts, 12)
    for odd in (prompts[:11], prompts[::-1], [*prompts, replace(prompts[0], record_id="r-012")]):
        with pytest.raises(GateRefused, match="not the frozen ones"):
            check_prompt_identity(odd, prompts, 12)
    with pytest.raises(GateRefused, match="twice: got r-003"):
        check_prompt_identity([*prompts[:11], prompts[3]], prompts, 12)
    with pytest.raises(GateRefused, match="not the frozen ones: got r-x, need r-011"):
        check_prompt_identity([*prompts[:11], replace(prompts[11], record_id="r-x")], prompts, 12)
    with pytest.raises(GateRefused, match="got 11 prompts, need 12"):
        check_prompt_identity(prompts[:11], prompts[:11], 12)


@pytest.fixture
def roomy(exact: Experiment) -> Experiment:
    """A registration whose longest prompt is the longest that there could be."""
    return exact.model_copy(update={"longest_prompt_tokens": 15_870})


def test_a_context_that_is_filled_exactly_passes(
    roomy: Experiment, facts: Facts, prompts: list[PromptFacts]
) -> None:
    full = [*prompts, PromptFacts("r-long", "a" * 64, 15_870)]
    record = check_context(roomy, roomy.rungs[0], facts(), full)
    assert record.numbers["total_tokens"] == 65_536
    assert record.numbers["margin_tokens"] == 0
    assert record.numbers["longest_prompt_id"] == "r-long"


@pytest.mark.parametrize(("tokens", "overflow"), [(15_871, 1), (65_536, 49_666), (70_000, 54_130)])
def test_a_context_overflow_names_prompt_and_tokens(
    roomy: Experiment, facts: Facts, prompts: list[PromptFacts], tokens: int, overflow: int
) -> None:
    full = [*prompts, PromptFacts("r-long", "a" * 64, tokens)]
    with pytest.raises(GateRefused, match=rf"prompt r-long leaves no room: over by {overflow} tokens"):
        check_context(roomy, roomy.rungs[0], facts(), full)


def test_a_context_without_room_cannot_be_registered(exact: Experiment, changed: Changed) -> None:
    with pytest.raises(ValidationError, match="answer_max_tokens"):
        changed(exact, sampling__answer_max_tokens=0)
    with pytest.raises(ValidationError, match="thinking_budget_tokens"):
        Rung(thinking_budget_tokens=0, max_num_seqs=1, capture_sizes=(1,), deadline_s=1)


def test_a_prompt_longer_than_registered_or_empty(
    exact: Experiment, facts: Facts, prompts: list[PromptFacts]
) -> None:
    with pytest.raises(GateRefused, match=r"r-x is longer than registered: got 1061, need at most 1060"):
        check_context(exact, exact.rungs[0], facts(), [*prompts, PromptFacts("r-x", "a" * 64, 1_061)])
    with pytest.raises(GateRefused, match="r-x has no length"):
        check_context(exact, exact.rungs[0], facts(), [*prompts, PromptFacts("r-x", "a" * 64, 0)])
    one = check_context(exact, exact.rungs[0], facts(), [PromptFacts("r-x", "a" * 64, 1)])
    assert one.numbers["longest_prompt_tokens"] == 1
    with pytest.raises(GateRefused, match="no prompt"):
        check_context(exact, exact.rungs[0], facts(), [])
    with pytest.raises(GateRefused, match="live max_model_len"):
        check_context(exact, exact.rungs[0], facts(max_model_len_tokens=65_535), prompts)


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
def test_an_inflated_block_size(
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


def test_contradicting_pool_figures_are_both_shown(
    implicit: Experiment, changed: Changed, facts: Facts
) -> None:
    wide = _reserving(implicit, changed, 2)
    for concurrency in ("33.0", "33.00", "33.0000001"):
        live = facts(max_model_len_tokens=30_000, kv_cache_size_tokens=300_000, max_concurrency=concurrency)
        with pytest.raises(GateRefused, match=r"300000 KV tokens beside 33\.\d+x at 30000.*need 990000"):
            check_kv_fit(wide, wide.rungs[0], "probe", live, 100)


def test_the_pool_of_each_start_is_gated(implicit: Experiment, changed: Changed, facts: Facts) -> None:
    wide = _reserving(implicit, changed, 15)
    first = check_kv_fit(wide, wide.rungs[0], "probe", _pool(facts, 528, 1_000_032), 100)
    assert first.numbers["largest_width"] == 15
    with pytest.raises(GateRefused, match="14 sequences fit"):
        check_kv_fit(wide, wide.rungs[0], "probe", _pool(facts, 528, 940_000), 100)


def test_a_block_size_absent(exact: Experiment, facts: Facts) -> None:
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


@pytest.mark.parametrize(
    "asked_resolved_missing", [(19, (1, 2, 4, 8, 16), "17-19"), (12, (1, 2, 4, 8), "9-12")]
)
def test_a_capture_list_cut_to_the_grid(
    exact: Experiment, changed: Changed, facts: Facts, asked_resolved_missing: Any
) -> None:
    width, resolved, words = asked_resolved_missing
    rung = {**exact.rungs[0].model_dump(), "max_num_seqs": width, "capture_sizes": (*resolved, width)}
    narrow = changed(exact, rungs=[rung])
    live = facts(max_num_seqs=width, capture_max_requested=width, capture_resolved=resolved)
    with pytest.raises(GateRefused, match=f"widths {words} without a graph"):
        check_cuda_graphs(narrow, narrow.rungs[0], live)


@pytest.mark.parametrize(
    "args", [{"speculative_config": {"num_speculative_tokens": 3}}, {"num_speculative_tokens": 3}]
)
def test_speculation_widens_the_batch(exact: Experiment, facts: Facts, args: Any) -> None:
    live = facts(capture_resolved=(4, 8, 16, 20), resolved_args=args)
    with pytest.raises(GateRefused, match=r"widths 6-19 without a graph.*ending at 76"):
        check_cuda_graphs(exact, exact.rungs[0], live)
    with pytest.raises(GateRefused, match="ending at 76"):  # the right list for another engine
        check_cuda_graphs(exact, exact.rungs[0], facts(requested_args=args))


def test_an_implicit_list_is_recorded_against_the_widened_batch(implicit: Experiment, facts: Facts) -> None:
    live = facts(capture_requested=None, capture_resolved=(1, 2, 4, 8, 16))
    plain = check_cuda_graphs(implicit, implicit.rungs[0], live).numbers
    assert (plain["draft_tokens"], plain["uncovered_widths"]) == (0, "17-19")
    wider = live.model_copy(update={"resolved_args": {"num_speculative_tokens": 1}})
    numbers = check_cuda_graphs(implicit, implicit.rungs[0], wider).numbers
    assert (numbers["draft_tokens"], numbers["uncovered_widths"]) == (1, "9-19")
    none = live.model_copy(update={"resolved_args": {"num_speculative_tokens": 0}})
    assert check_cuda_graphs(implicit, implicit.rungs[0], none).numbers["draft_tokens"] == 0


@pytest.mark.parametrize(
    "args",
    [
        {"speculative_config": {"method": "x"}},
        {"num_speculative_tokens": "3"},
        {"num_speculative_tokens": -1},
    ],
)
def test_speculation_without_a_number(exact: Experiment, facts: Facts, args: Any) -> None:
    with pytest.raises(GateRefused, match="speculation without"):
        check_cuda_graphs(exact, exact.rungs[0], facts(resolved_args=args))


def test_an_unsorted_capture_list_is_refused(exact: Experiment, facts: Facts) -> None:
    mixed = (19, 16, 16, 8, 4, 2, 1)
    with pytest.raises(GateRefused, match="strictly increasing"):
        check_cuda_graphs(exact, exact.rungs[0], facts(capture_resolved=mixed))
    with pytest.raises(GateRefused, match="requested capture sizes"):
        check_cuda_graphs(exact, exact.rungs[0], facts(capture_requested=mixed))


def test_an_unsorted_capture_list_is_accepted_where_normalising_is_registered(
    exact: Experiment, changed: Changed, facts: Facts
) -> None:
    mixed = (19, 16, 16, 8, 4, 2, 1)
    lenient = changed(exact, engine__capture_normalised=True)
    record = check_cuda_graphs(lenient, lenient.rungs[0], facts(capture_resolved=mixed))
    assert (record.numbers["capture_normalised"], record.numbers["uncovered_widths"]) == (True, "none")
    assert record.numbers["requested_sizes"] == (1, 2, 4, 8, 16, 19)  # both as the engine said them
    assert record.numbers["resolved_sizes"] == mixed
    check_cuda_graphs(lenient, lenient.rungs[0], facts(capture_requested=mixed, capture_resolved=mixed))
    for other in ((16, 16, 8, 4, 2, 1), (19, 16, 16, 4, 2, 1), (20, 19, 16, 8, 4, 2, 1)):
        with pytest.raises(GateRefused, match=r"without a graph|resolved capture sizes|past the widest"):
            check_cuda_graphs(lenient, lenient.rungs[0], facts(capture_resolved=other))
    for nothing in ((), None):
        with pytest.raises(GateRefused, match="no capture sizes"):
            check_cuda_graphs(lenient, lenient.rungs[0], facts(capture_resolved=nothing))


def test_normalising_is_bound_where_registered_and_absent_where_not(
    exact: Experiment, implicit: Experiment, changed: Changed
) -> None:
    assert "capture_normalised" not in exact.protocol_section()["engine"]
    lenient = changed(exact, engine__capture_normalised=True)
    assert lenient.protocol_section()["engine"]["capture_normalised"] is True
    assert changed(lenient) == lenient
    with pytest.raises(ValidationError, match="capture_normalised: got true with capture 'implicit'"):
        changed(implicit, engine__capture_normalised=True)


@pytest.mark.parametrize(
    "live",
    [
        {"enforce_eager": True},
        {"decode_graph_mode": "PIECEWISE"},
        {"decode_graph_mode": "NONE", "graph_mode": "NONE"},
        {"has_full_graphs": False},
    ],
)
def test_the_right_capture_list_but_no_full_graphs(exact: Experiment, facts: Facts, live: Any) -> None:
    with pytest.raises(GateRefused, match="full graphs"):
        check_cuda_graphs(exact, exact.rungs[0], facts(**live))


@pytest.mark.parametrize("nothing", [(), None])
def test_no_capture_list(exact: Experiment, implicit: Experiment, facts: Facts, nothing: Any) -> None:
    with pytest.raises(GateRefused, match="no capture sizes"):
        check_cuda_graphs(exact, exact.rungs[0], facts(capture_resolved=nothing))
    with pytest.raises(GateRefused, match="no graph was captured"):
        check_cuda_graphs(
            implicit, implicit.rungs[0], facts(capture_requested=None, capture_resolved=nothing)
        )


def test_an_exact_list_that_is_another_list(exact: Experiment, facts: Facts) -> None:
    for word in ("requested", "resolved"):
        with pytest.raises(GateRefused, match=f"{word} capture sizes are not the registered"):
            check_cuda_graphs(exact, exact.rungs[0], facts(**{f"capture_{word}": (1, 2, 4, 8, 19)}))


def test_implicit_capture_records_what_stays_uncovered(implicit: Experiment, facts: Facts) -> None:
    live = facts(capture_requested=None, capture_resolved=(1, 2, 4, 8, 16))
    numbers = check_cuda_graphs(implicit, implicit.rungs[0], live).numbers
    assert numbers["uncovered_widths"] == "17-19"
    assert numbers["resolved_sizes"] == (1, 2, 4, 8, 16)
    with pytest.raises(GateRefused, match="a capture list was requested"):
        check_cuda_graphs(implicit, implicit.rungs[0], facts())


def test_capture_none_is_an_eager_engine(exact: Experiment, changed: Changed, facts: Facts) -> None:
    rung = {**exact.rungs[0].model_dump(), "capture_sizes": None}
    eager = changed(exact, engine__capture="none", engine__enforce_eager=True, rungs=[rung])
    live = {
        "enforce_eager": True,
        "capture_requested": None,
        "capture_max_requested": None,
        "capture_resolved": (),
        "graph_mode": "NONE",
        "decode_graph_mode": "NONE",
        "has_full_graphs": False,
    }
    record = check_cuda_graphs(eager, eager.rungs[0], facts(**live))
    assert record.numbers["uncovered_widths"] == "1-19"
    for odd in ({"enforce_eager": False}, {"capture_resolved": (1,)}, {"has_full_graphs": True}):
        with pytest.raises(GateRefused, match="graphs were captured"):
            check_cuda_graphs(eager, eager.rungs[0], facts(**{**live, **odd}))
