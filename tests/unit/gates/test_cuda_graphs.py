"""The registered capture sizes pass; other, missing, unordered or partial graphs are refused."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from fitladder.errors import GateRefused
from fitladder.gates.cuda_graphs import check_cuda_graphs
from fitladder.records.engine_facts import EngineFacts
from fitladder.records.experiment import Experiment

Facts = Callable[..., EngineFacts]
Changed = Callable[..., Experiment]


@pytest.mark.parametrize(
    "asked_resolved_missing", [(19, (1, 2, 4, 8, 16), "17-19"), (12, (1, 2, 4, 8), "9-12")]
)
def test_capture_sizes_cut_to_powers_of_two_leave_widths_without_a_graph(
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
def test_capture_sizes_must_cover_the_tokens_of_speculation(
    exact: Experiment, facts: Facts, args: Any
) -> None:
    live = facts(capture_resolved=(4, 8, 16, 20), resolved_args=args)
    with pytest.raises(GateRefused, match=r"widths 6-19 without a graph.*ending at 76"):
        check_cuda_graphs(exact, exact.rungs[0], live)
    with pytest.raises(GateRefused, match="ending at 76"):  # the right list for another engine
        check_cuda_graphs(exact, exact.rungs[0], facts(requested_args=args))


def test_capture_sizes_chosen_by_vllm_are_recorded_against_the_tokens_of_speculation(
    implicit: Experiment, facts: Facts
) -> None:
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
def test_capture_under_speculation_without_a_number_is_refused(
    exact: Experiment, facts: Facts, args: Any
) -> None:
    with pytest.raises(GateRefused, match="speculation without"):
        check_cuda_graphs(exact, exact.rungs[0], facts(resolved_args=args))


def test_capture_sizes_out_of_order_are_refused(exact: Experiment, facts: Facts) -> None:
    mixed = (19, 16, 16, 8, 4, 2, 1)
    with pytest.raises(GateRefused, match="strictly increasing"):
        check_cuda_graphs(exact, exact.rungs[0], facts(capture_resolved=mixed))
    with pytest.raises(GateRefused, match="requested capture sizes"):
        check_cuda_graphs(exact, exact.rungs[0], facts(capture_requested=mixed))


def test_capture_sizes_out_of_order_pass_where_normalising_is_registered(
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
def test_capture_without_full_decode_graphs_is_refused(exact: Experiment, facts: Facts, live: Any) -> None:
    with pytest.raises(GateRefused, match="full graphs"):
        check_cuda_graphs(exact, exact.rungs[0], facts(**live))


@pytest.mark.parametrize("nothing", [(), None])
def test_capture_of_no_graph_is_refused(
    exact: Experiment, implicit: Experiment, facts: Facts, nothing: Any
) -> None:
    with pytest.raises(GateRefused, match="no capture sizes"):
        check_cuda_graphs(exact, exact.rungs[0], facts(capture_resolved=nothing))
    with pytest.raises(GateRefused, match="no graph was captured"):
        check_cuda_graphs(
            implicit, implicit.rungs[0], facts(capture_requested=None, capture_resolved=nothing)
        )


def test_capture_sizes_that_are_not_the_registered_ones_are_refused(exact: Experiment, facts: Facts) -> None:
    for word in ("requested", "resolved"):
        with pytest.raises(GateRefused, match=f"{word} capture sizes are not the registered"):
            check_cuda_graphs(exact, exact.rungs[0], facts(**{f"capture_{word}": (1, 2, 4, 8, 19)}))


def test_capture_sizes_chosen_by_vllm_are_recorded_with_uncovered_widths(
    implicit: Experiment, facts: Facts
) -> None:
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
