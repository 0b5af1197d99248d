"""One page: self-contained, escaped, in order, the same bytes each time; its Markdown twin says the same."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.page_data import history_data, small_data

from fitladder.report.document import Document, Para, Section
from fitladder.report.experiment_page import build_report, experiment_document
from fitladder.report.experiment_view import load_view
from fitladder.report.html import render_html
from fitladder.report.markdown import render_markdown
from fitladder.report.view import ExperimentView, LogLine

EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
ORDER = [
    "programs",
    "idea",
    "question",
    "found",
    "matters",
    "glance",
    "protocol",
    "approvals",
    "gates",
    "audit",
    "ladder",
    "limits",
    "artifacts",
    "log",
]
HOSTILE = "</td><script>alert(1)</script> {{ 7*7 }} \ud835 \u202e\x07 | `x` $$ \"' &amp;"


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> ExperimentView:
    data, registry = history_data(tmp_path_factory.mktemp("workspace"))
    return load_view(EXACT, data, registry)


@pytest.fixture(scope="module")
def document(view: ExperimentView) -> Document:
    return experiment_document(view)


def test_sections_stand_in_the_promised_order(document: Document) -> None:
    assert [section.anchor for section in document.sections] == ORDER
    html = render_html(document)
    assert html.index('class="status') < html.index('id="programs"')
    assert re.findall(r'<section id="(\w+)"', html) == ORDER


def test_the_page_needs_nothing_but_itself(document: Document) -> None:
    html = render_html(document)
    assert "<script" not in html
    assert "@import" not in html
    assert not re.search(r'(?:src|href)="(?!#|data:,|index\.html)', html)
    outside = set(re.findall(r'https?://[^\s"\')<]+', html))
    assert outside == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names, never fetched


def test_every_picture_has_words_and_a_table(document: Document) -> None:
    html = render_html(document)
    figures = re.findall(r"<figure.*?</figure>", html, flags=re.DOTALL)
    assert len(figures) >= 6
    for figure in figures:
        assert re.search(r'role="img" aria-label="[^"]{40,}', figure)
        assert "<table>" in figure
        assert '<th scope="col"' in figure


def test_two_renders_are_equal(view: ExperimentView, document: Document) -> None:
    assert render_html(experiment_document(view)) == render_html(document)
    assert render_markdown(document) == render_markdown(experiment_document(view))


def test_hostile_text_is_shown_and_never_obeyed(view: ExperimentView) -> None:
    words = replace(view.narrative, title=HOSTILE, found=(HOSTILE,), may_not_conclude=(HOSTILE,))
    line = LogLine(1, "2026-01-02T03:04:05Z", HOSTILE, HOSTILE, "0" * 64)
    phases = tuple(replace(phase, phase=HOSTILE) for phase in view.phases)
    bad = replace(view, experiment_id=HOSTILE, verdict=HOSTILE, narrative=words, log=(line,), phases=phases)
    html = render_html(experiment_document(bad))
    html.encode()
    assert "<script" not in html
    assert "49" not in re.findall(r"<h1>(.*?)</h1>", html)[0]
    assert r"\u{d835} \u{202e}\u{7}" in html
    assert "{{ 7*7 }}" in html
    twin = render_markdown(experiment_document(bad))
    twin.encode()
    assert "<script" not in re.sub(r"``.*?``", "", twin).replace("\\<", "")  # inert inside a code span
    rows = [line for line in twin.splitlines() if line.startswith("| 1 | 2026")]
    assert len(rows) == 1
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == 6  # five cells, whatever the text holds


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- an item", r"\- an item"),
        ("1. an item", r"1\. an item"),
        ("12) an item", r"12\) an item"),
        ("---", r"\---"),
        ("=== under", r"\=== under"),
        ("+ more", r"\+ more"),
        ("-1 and 2.5 stay", "-1 and 2.5 stay"),
        ("see https://example.org or www.example.org", r"see https\://example.org or www\.example.org"),
        ("![x](y) <b> &lt;", r"!\[x\](y) \<b\> \&lt;"),
        ("one\n\n# two", r"one \# two"),
    ],
)
def test_text_begins_no_block_and_no_link_of_the_twin(document: Document, text: str, line: str) -> None:
    section = Section("found", "What was found", (Para(text),))
    twin = render_markdown(replace(document, sections=(section,)))
    assert twin.splitlines()[-1] == line


def test_the_twin_holds_every_figure_of_the_page(document: Document, words_of: Callable[[str], str]) -> None:
    def figures(text: str) -> set[str]:
        return set(re.findall(r"\d[\d,.]*\d", text))

    twin = render_markdown(document).replace("\\", "")
    assert figures(words_of(render_html(document))) <= figures(twin)


def test_the_limits_are_said_first_and_again(view: ExperimentView, words_of: Callable[[str], str]) -> None:
    text = words_of(render_html(experiment_document(view)))
    first = view.narrative.may_not_conclude[0]
    assert text.index(f"No one may conclude t{first[1:]}") < text.index("The one idea")
    for limit in view.narrative.may_not_conclude:
        assert limit in text[text.index("What no one may conclude") :]


def test_a_rehearsal_says_what_it_is(tmp_path: Path, words_of: Callable[[str], str]) -> None:
    data, registry = small_data(tmp_path)
    html, twin = build_report("small_experiment", data, registry)
    for text in (words_of(html), twin):
        assert "rehearsal of the machinery, not science" in text
        assert "Registered with review: self" in text
