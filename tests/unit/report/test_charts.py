"""Charts: the same bytes each time, no colour alone, a table of exactly the figures drawn."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from fitladder.canonical import Rate
from fitladder.records.settings import Thresholds
from fitladder.report.charts.canvas import VARIABLES, Chart
from fitladder.report.charts.capacity import CoverageBar, DemandBar, coverage_chart, demand_chart
from fitladder.report.charts.termination import RungShares, period_chart, termination_chart
from fitladder.report.charts.throughput import (
    StudyCell,
    ThroughputPoint,
    comparison_chart,
    factorial_chart,
    throughput_chart,
)
from fitladder.report.charts.timeline import MAX_TIMELINE_ROWS, timeline_chart
from fitladder.report.shares import shares
from fitladder.report.view import Comparison, Sample

LIMITS = Thresholds(
    unresolved_rate_below=Rate.parse("0.05"),
    answer_limit_rate_below=Rate.parse("0.05"),
    loop_rate_at_most=Rate.parse("0.25"),
)
HOSTILE = "<script>$x_1$ & \"'\u202e"


def sample(number: int, kind: str = "periodic loop") -> Sample:
    loop = kind == "periodic loop"
    return Sample(
        f"r{number}",
        kind,  # type: ignore[arg-type]
        1000,
        7 if loop else None,
        900 if loop else None,
        905 if loop else None,
        400 if loop else None,
        600 if loop else None,
    )


def every_chart(label: str = "probe at 49,152") -> list[Chart]:
    row = Comparison(
        "an_experiment",
        label,
        49152,
        19,
        "exact",
        10,
        20,
        100,
        2.0,
        50.0,
        "1 of 4",
        "1 of 4",
        "1 of 4",
        "audit x",
    )
    kinds = ["periodic loop", "complete", "unresolved contact", "ended inside thinking", "too short to tell"]
    return [
        demand_chart([DemandBar(label, 963_072, 997_888), DemandBar("wide", 2_433_024, 995_328, False)]),
        coverage_chart(
            [
                CoverageBar(label, 19, (1, 2, 4, 8, 16), "17-19"),
                CoverageBar("eager", 12, (), "1-12"),
                CoverageBar("old", 64, None, "not recorded"),
            ]
        ),
        termination_chart(
            [RungShares(label, shares(37, 11, 9, 48, LIMITS)), RungShares("b", shares(0, 0, 0, 0, LIMITS))]
        ),
        timeline_chart(label, [sample(n, kind) for n, kind in enumerate(kinds)], 1000, name="timeline"),
        period_chart([(label, (5, 5, 1667)), ("b", ())], 2048),
        throughput_chart(
            [ThroughputPoint(label, 19, 471.754, None, True), ThroughputPoint("w", 64, 586.471, 25, False)]
        ),
        factorial_chart(
            [
                StudyCell(label, 64, "exact", 230, 2877.5, 2800.0, 2900.0, 25, 400, 3),
                StudyCell("failed", 19, "exact", 230, None, None, None, None, None, 0, 3),
            ]
        ),
        comparison_chart([row]),
    ]


@pytest.mark.parametrize("index", range(8))
def test_a_chart_is_whole(index: int) -> None:
    chart = every_chart()[index]
    root = ET.fromstring(chart.svg)
    assert root.tag.endswith("svg")
    assert "viewBox" in root.attrib
    assert chart.alt.strip()
    assert chart.rows
    assert all(len(row) == len(chart.columns) for row in chart.rows)


def test_the_same_figures_give_the_same_bytes_in_any_process() -> None:
    probe = (
        "import hashlib, sys; sys.path[:0] = ['tests', 'tests/unit/report'];"
        "import test_charts as t;"
        "print(hashlib.sha256(''.join(c.svg for c in t.every_chart()).encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", probe],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "HOME": "/tmp", "TZ": zone, "LC_ALL": "C.UTF-8"},
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert len(found) == 1
    assert [c.svg for c in every_chart()] == [c.svg for c in every_chart()]


def test_colours_are_the_pages_and_no_tool_signs_or_dates_a_picture() -> None:
    for chart in every_chart():
        bare = re.sub(r"var\(--[\w-]+, #[0-9a-f]{6}\)", "", chart.svg)
        assert not re.search(r"#[0-9a-f]{6}\b", bare), chart.name
        assert "matplotlib" not in chart.svg
        assert "<metadata" not in chart.svg
        assert "<style" not in chart.svg
    assert len(set(VARIABLES.values())) == len(VARIABLES)


def test_ids_of_two_charts_never_meet() -> None:
    seen: set[str] = set()
    for chart in every_chart():
        ids = set(re.findall(r'\bid="([^"]+)"', chart.svg))
        assert not ids & seen
        seen |= ids
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', chart.svg)) <= ids


def test_shares_and_demand_are_told_apart_without_colour() -> None:
    termination = every_chart()[2].svg
    assert len(set(re.findall(r'<pattern id="([^"]+)"', termination))) == 3  # one hatch a share
    assert "<pattern" in every_chart()[0].svg  # what does not fit is hatched
    assert "37/48 over" in termination


def test_marks_side_by_side_have_numbers_apart_and_a_key() -> None:
    points = [
        ThroughputPoint("a", 19, 2293.0, 0, True),
        ThroughputPoint("b", 16, 2284.0, 0, True),
        ThroughputPoint("c", 19, 2300.0, None, True),
        ThroughputPoint("d", 64, 2298.0, 15, False),
    ]
    chart = throughput_chart(points)
    root = ET.fromstring(chart.svg)
    places = {
        text.text: re.findall(r"[\d.]+", text.get("transform") or f"{text.get('x')} {text.get('y')}")[-2:]
        for text in root.iter("{http://www.w3.org/2000/svg}text")
        if text.text in {"1", "2", "3", "4"}
    }
    assert len(places) == 4
    assert len({tuple(place) for place in places.values()}) == 4
    assert abs(float(places["1"][1]) - float(places["3"][1])) > 8  # one number's height
    assert float(places["2"][0]) < float(places["1"][0]) - 15  # to the left of its mark
    assert "1: a, 0 preempted. 2: b, 0 preempted. 3: c, preemptions not recorded." in chart.note


def test_hatching_is_explained_where_it_is_drawn() -> None:
    factorial, comparison = every_chart()[6:8]
    assert "hatched: preempted" in factorial.svg
    assert "hatched" not in comparison.svg  # nothing there is overcommitted


def test_hostile_labels_stay_text() -> None:
    for chart in every_chart(HOSTILE):
        ET.fromstring(chart.svg)
        assert "<script" not in chart.svg


def test_a_long_list_is_drawn_in_part_and_says_so() -> None:
    rows = [sample(number) for number in range(MAX_TIMELINE_ROWS + 40)]
    chart = timeline_chart("many", rows, 1000, name="t")
    assert len(chart.rows) == MAX_TIMELINE_ROWS
    assert chart.note.startswith("40 further samples")
    assert f"{len(rows)} samples" in chart.alt
    assert f"{600 * len(rows):,} of {1000 * len(rows):,}" in chart.alt


def test_the_largest_period_searched_is_named() -> None:
    chart = period_chart([("probe", (2047, 2048))], 2048)
    assert "2,048 tokens" in chart.note
    assert "not an absence of loops" in chart.note
    assert [row for row in chart.rows if row[1] != "0"] == [("1024-2047", "1"), ("2048", "1")]


def test_an_interval_is_wide_where_nothing_was_counted() -> None:
    low = shares(0, 0, 0, 0, LIMITS)[0]
    assert (low.low, low.high, low.within) == (0.0, 1.0, False)
    loops = shares(37, 11, 9, 48, LIMITS)[0]
    assert (round(loops.low, 3), round(loops.high, 3)) == (0.635, 0.867)
    assert loops.ceiling_text.replace("\u00a0", " ") == "at most 25 %"


def test_the_edge_of_each_ceiling() -> None:
    assert shares(12, 2, 2, 48, LIMITS)[0].within
    assert not shares(13, 2, 2, 48, LIMITS)[0].within
    assert shares(12, 2, 2, 48, LIMITS)[1].within
    assert not shares(12, 3, 2, 60, LIMITS)[1].within


def test_the_count_of_a_wide_interval_is_written_beside_it_and_not_over_the_names() -> None:
    few = termination_chart([RungShares("a", shares(2, 0, 0, 4, LIMITS))]).svg
    none = termination_chart([RungShares("b", shares(0, 0, 0, 0, LIMITS))]).svg
    for svg, count in ((few, "2/4 over"), (none, "0/0 over")):
        placed = re.findall(r'text-anchor: (\w+)[^>]* x="([\d.]+)"[^>]*>([^<]+)<', svg)
        at = {text: (anchor, float(x)) for anchor, x, text in placed}
        assert at[count][0] == "start"
        assert at["75 %"][1] < at[count][1] < float(re.findall(r'viewBox="0 0 ([\d.]+)', svg)[0]) - 45
