"""Every figure of the two historic experiments stands on their pages, in both twins."""

from pathlib import Path

import pytest
from support.page_data import history_data

from fitladder.canonical import sha256_file
from fitladder.report.experiment_page import build_report
from fitladder.report.index_page import build_index

CAPACITY = "qwen35_4b_verified_macro_capacity_fit_rerun"
EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
PARENT = "qwen35_4b_verified_macro_long_context_rerun"
BOTH = [
    "Qwen/Qwen3.5-4B, revision 851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a",
    "bfloat16, TP 1",
    "65,536 tokens",
    "gpu_memory_utilization 0.9",
    "32,768 tokens",
    "temperature 0.6, top-p 0.95, top-k 20",
    "2701",
    "512 tokens",
    "budget 49,152 at max_num_seqs 19",
    "budget 61,440 at max_num_seqs 15",
    "12 records an arm; probe K=4, base and designed K=12",
    "the last 8,192 thinking tokens repeat at some period of 1 to 2,048 tokens, match rate at least 99 %",
    "unresolved below 5 %, answer limit below 5 %, loops at most 25 %",
    # the direct parent, for comparison only
    f"{PARENT} | 49,152 | 64 | implicit | 2,433,024 / 995,328",
    "2,366,620",
    "4,035.356",
    "586.471",
]
OF = {
    CAPACITY: [
        "Stopped",
        "State | complete | preflight only",
        "Width (max_num_seqs) | 19 | 15",
        "Capture sizes requested | max 19, implicit | max 15, implicit",
        "Capture sizes resolved | 1 2 4 8 16 | 1 2 4 8",
        "Widths without a graph | 17-19 | 9-15",
        "Live KV tokens (block) | 997,888 (528) | 997,888 (528)",
        "Required KV tokens | 963,072 | 950,400",
        "Margin | 34,816 | 47,488",
        "Periodic loops | 37 of 48 | no row",
        "Unresolved contacts | 11 of 48 | no row",
        "Answer-limit contacts | 9 of 48 | no row",
        "Sampled tokens | 2,364,643 | no row",
        "Generation seconds | 5,012.451 | no row",
        "Tokens a second | 471.754 | no row",
        "Outcome | rung rejected | interrupted; experiment stopped",
        "interrupted",
        "nothing; the experiment was stopped",
        "19.56 % slower than the parent",
        "5c1b8bc77e71fb5c23302b4cb850b4347859ad5b4941246078cb96ea1a59c24a",
        "0bf398db12f349a4c49b99770e7d5f07e5ca3b2dcc2c172aec17e844a6a78b6b",
        "7583edbc2bc211c4123b3bdd65db228941b49954377a80b70ff82e8ee6d52fda",
    ],
    EXACT: [
        "Terminal: nothing selected",
        "pass: false, selected: null",
        "Width (max_num_seqs) | 19 | 15",
        "Capture sizes requested | 1 2 4 8 16 19, exact | 1 2 4 8 15, exact",
        "Capture sizes resolved | 1 2 4 8 16 19 | 1 2 4 8 15",
        "Widths without a graph | none | none",
        "Live KV tokens (block) | 996,864 (528) | 997,888 (528)",
        "Required KV tokens | 963,072 | 950,400",
        "Margin | 33,792 | 47,488",
        "Periodic loops | 38 of 48 | 40 of 48",
        "Unresolved contacts | 10 of 48 | 8 of 48",
        "Answer-limit contacts | 6 of 48 | 4 of 48",
        "Sampled tokens | 2,363,163 | 2,951,995",
        "Generation seconds | 4,809.081 | 7,422.886",
        "Tokens a second | 491.396 | 397.688",
        "Outcome | rung rejected | rung rejected",
        "decode_graph_mode | FULL",
        "4.16 % faster than the implicit list",
        "16.21 % slower than the overcommitted diagnostic",
        "acbaf7cdb84ee5633e4f86b0716360c382f2262eb50e79ca92ce02b6e157fb07",
        "9d2692c6acad35d3b7ab56ddf368c9974c1ddaf6e0a06997b01015c0de397158",
    ],
}


def plain(markdown: str) -> str:
    return markdown.replace("\\", "").replace("\u00a0", " ")


@pytest.mark.parametrize("experiment", [CAPACITY, EXACT])
def test_every_registered_figure_is_on_the_page(tmp_path: Path, experiment: str) -> None:
    data, registry = history_data(tmp_path)
    html, markdown = build_report(experiment, data, registry)
    twin, page = plain(markdown), html.replace("\u00a0", " ").replace("&lt;", "<")
    assert experiment in twin
    assert (
        sha256_file(data / "history" / f"{experiment}.json") in twin
    )  # what sha256sum, printed there, gives
    for figure in (*BOTH, *OF[experiment]):
        assert figure in twin, figure
        for part in figure.split(" | "):
            assert part in page, part


@pytest.mark.parametrize("experiment", [CAPACITY, EXACT])
def test_figures_that_only_differ_are_not_there(tmp_path: Path, experiment: str) -> None:
    data, registry = history_data(tmp_path)
    twin = plain(build_report(experiment, data, registry)[1])
    glance = twin[twin.index("## Results at a glance") : twin.index("**Demand against live capacity.**")]
    others = {CAPACITY: ["38 of 48", "40 of 48", "996,864"], EXACT: ["37 of 48", "34,816", "471.754"]}
    for figure in others[experiment]:
        assert figure not in glance


def test_the_index_has_every_phase_that_generated(tmp_path: Path) -> None:
    data, registry = history_data(tmp_path)
    twin = plain(build_index(data, registry)[1])
    for figure in ("471.754", "491.396", "397.688", "37 of 48", "38 of 48", "40 of 48", "963,072 / 996,864"):
        assert figure in twin
    assert PARENT not in twin  # a diagnostic is no experiment of this registry
