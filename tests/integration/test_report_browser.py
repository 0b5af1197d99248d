"""The pages in a real browser: phone and desktop, light and dark, on paper, and for a screen reader."""

import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from support.page_data import history_data, small_data

from fitladder.audit.token_files import ForeignRow, audit_rows
from fitladder.canonical import Rate
from fitladder.records.settings import LoopRule
from fitladder.report.experiment_page import build_report
from fitladder.report.index_page import build_index
from fitladder.report.loop_page import render_loop_page
from fitladder.report.running_log import append_log
from fitladder.report.study_page import build_study

pytestmark = pytest.mark.browser

CHROMIUM = Path("/usr/bin/chromium")
ROOT = Path(__file__).parents[2]
AXE_VERSION = "4.14.1"
EXACT = "qwen35_4b_verified_macro_exact_cudagraph_rerun"
CAPACITY = "qwen35_4b_verified_macro_capacity_fit_rerun"
PAGES = ("exact", "capacity", "small", "index", "loops", "study", "hostile")
RIGHT_TO_LEFT = "\u05d0\u05d1\u05d2 \u0634\u0635 " * 20 + "\u202e<b>gpj"
LONG = "x" * 300 + "</td><script>" + "\U0001d54f" * 40
# Whatever sticks out to the right of the window and is not inside something that scrolls by itself.
OVERFLOWING = """() => {
  const wide = document.documentElement.clientWidth + 1, found = [];
  for (const one of document.body.querySelectorAll("*")) {
    const box = one.getBoundingClientRect();
    if (box.width === 0 || box.right <= wide || one.closest(".scroll, .skip, .unseen, svg defs")) continue;
    found.push(`${one.tagName} ${one.className}: ${Math.round(box.right)} of ${wide}`);
  }
  if (document.documentElement.scrollWidth > wide) found.push(`page ${document.documentElement.scrollWidth}`);
  return found;
}"""
CLIPPED_TEXT = """() => [...document.querySelectorAll("svg text")].filter(one => {
  const text = one.getBoundingClientRect(), picture = one.ownerSVGElement.getBoundingClientRect();
  return text.width && (text.left < picture.left - 1 || text.right > picture.right + 1 ||
    text.top < picture.top - 1 || text.bottom > picture.bottom + 1);
}).map(one => one.textContent)"""


UNSEEN_TABLES = """() => [...document.querySelectorAll("details table")].filter(
  one => one.getBoundingClientRect().height < 10).length"""
UNREACHED_TABLES = """() => [...document.querySelectorAll("table")].filter(
  one => !one.closest('.scroll[tabindex="0"][aria-label]')).length"""
DEAD_LINKS = """() => [...document.querySelectorAll('a[href^="#"]')].filter(
  one => !document.querySelector(one.hash)).length"""
REPEATED_IDS = """() => {
  const ids = [...document.querySelectorAll("[id]")].map(one => one.id);
  return ids.filter((id, at) => ids.indexOf(id) !== at);
}"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    data, registry = history_data(folder / "history")
    small, small_registry = small_data(folder / "small", done=((64, "probe"), (96, "probe")))
    words = {
        "title": LONG,
        "near_duplicate": LONG,
        "near_duplicate_difference": RIGHT_TO_LEFT,
        "found": [LONG.replace("\U0001d54f", "y")],
        "may_not_conclude": [LONG],
        "names": [],
    }
    hostile, hostile_registry = small_data(folder / "hostile", words=words)
    for text in (LONG, RIGHT_TO_LEFT, "- | `x` ![y](z) https://example.org"):
        append_log(hostile, "small_experiment", text, author=LONG[:100], recorded="2026-01-02T03:04:05Z")
    html = {
        "exact": build_report(EXACT, data, registry)[0],
        "capacity": build_report(CAPACITY, data, registry)[0],
        "small": build_report("small_experiment", small, small_registry)[0],
        "hostile": build_report("small_experiment", hostile, hostile_registry)[0],
        "index": build_index(data, registry)[0],
        "loops": _loops(),
        "study": build_study(ROOT / "data" / "studies" / "h200_qwen35_4b")[0],
    }
    for name, text in html.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in html}


def _loops() -> str:
    draw = np.random.default_rng(7)
    rows = []
    for number in range(30):
        ids = draw.integers(0, 50_000, 900, dtype=np.int32)
        if number % 3:
            ids[400:] = np.resize(ids[400 : 400 + number], 500)
        name = {0: "long-" * 40, 1: RIGHT_TO_LEFT, 2: LONG}.get(number, f"row-{number}")
        rows.append(ForeignRow(name, ids[:200] if number == 4 else ids, "here"))
    rule = LoopRule(
        tail_tokens=256, max_period_tokens=64, min_match_rate=Rate.parse("0.99"), min_budget_tokens=1
    )
    return render_loop_page(
        audit_rows(rows, rule), rule, source="my_outputs.jsonl", column="token_ids", sha256="0" * 64
    )


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is absent: apt-get install chromium")
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def axe() -> str:
    """axe-core from the npm registry, kept in the checkout's cache and in no commit."""
    folder = ROOT / ".cache" / "axe" / AXE_VERSION
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is absent, so axe-core cannot be fetched")
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [
                npm,
                "install",
                "--prefix",
                str(folder),
                "--no-save",
                "--ignore-scripts",
                f"axe-core@{AXE_VERSION}",
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if not script.exists():
            pytest.skip(f"axe-core could not be fetched: {done.stderr.strip()[-200:]}")
    return script.read_text(encoding="utf-8")


class Shown:
    """Every page, loaded once; a test says in which window, colours and medium it looks at it."""

    def __init__(self, browser: Browser, files: dict[str, Path]) -> None:
        self.browser, self.files, self.loaded = browser, files, dict[str, Page]()

    def page(
        self, name: str, width: int, scheme: Any = "light", *, medium: Any = "screen", unfolded: bool = False
    ) -> Page:
        if name not in self.loaded:
            new = self.browser.new_page()
            new.route("http*://**/*", lambda route: pytest.fail(f"the page asked for {route.request.url}"))
            new.goto(self.files[name].as_uri())
            self.loaded[name] = new
        page = self.loaded[name]
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media=medium, color_scheme=scheme)
        page.evaluate(
            f"document.querySelectorAll('details').forEach(one => {{ one.open = {json.dumps(unfolded)} }})"
        )
        return page


@pytest.fixture(scope="module")
def shown(browser: Browser, pages: dict[str, Path]) -> Shown:
    return Shown(browser, pages)


@pytest.mark.parametrize("name", PAGES)
def test_nothing_overflows_on_a_phone_or_a_desktop(shown: Shown, name: str) -> None:
    for width in (360, 1280):
        page = shown.page(name, width)
        assert page.evaluate(OVERFLOWING) == []
        assert page.evaluate(CLIPPED_TEXT) == []
        assert shown.page(name, width, unfolded=True).evaluate(OVERFLOWING) == []


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_in_light_or_dark(shown: Shown, axe: str, name: str) -> None:
    """All of axe's rules on the desktop; on a phone in the dark those whose answer can differ there."""
    page = shown.page(name, 1280, "light", unfolded=True)
    page.evaluate(axe)
    assert _violations(page, {}) == []
    page = shown.page(name, 360, "dark", unfolded=True)
    rules = ["color-contrast", "scrollable-region-focusable", "target-size"]
    assert _violations(page, {"runOnly": rules}) == []


def _violations(page: Page, options: dict[str, Any]) -> list[tuple[str, str]]:
    found = page.evaluate("options => axe.run(document, options)", options | {"resultTypes": ["violations"]})
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]]


def test_dark_is_dark_and_pictures_follow(shown: Shown) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('svg text')).fill"
    seen = {}
    for scheme in ("light", "dark"):
        page = shown.page("small", 1280, scheme)
        seen[scheme] = (page.evaluate(background), page.evaluate(ink))
    assert seen["light"][0] != seen["dark"][0]
    assert seen["light"][1] != seen["dark"][1]


@pytest.mark.parametrize("name", PAGES)
def test_paper_shows_everything_and_cuts_nothing(shown: Shown, name: str) -> None:
    page = shown.page(name, 718, "dark", medium="print")  # A4 less 10 mm margins, in CSS pixels
    assert page.evaluate(OVERFLOWING) == []
    assert page.evaluate(UNSEEN_TABLES) == 0
    assert page.evaluate("getComputedStyle(document.querySelector('p')).color") == "rgb(0, 0, 0)"


@pytest.mark.parametrize("name", ["exact", "hostile"])
def test_a_page_prints_to_pdf(shown: Shown, name: str) -> None:
    margins: Any = dict.fromkeys(("top", "bottom", "left", "right"), "10mm")
    document = shown.page(name, 718, medium="print").pdf(format="A4", margin=margins)
    assert document.startswith(b"%PDF-")
    assert 2 <= document.count(b"/Type /Page\n") + document.count(b"/Type /Page ") <= 20


def test_the_keyboard_reaches_the_content_and_every_wide_table(shown: Shown) -> None:
    page = shown.page("exact", 360)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")
    assert page.evaluate(UNREACHED_TABLES) == 0


def test_a_number_of_the_contents_stands_at_the_first_line_of_its_link(shown: Shown) -> None:
    """A marker sits on its line's baseline: a link that wraps must not push that below its first line."""
    styles = shown.page("exact", 360).evaluate(
        "[...document.querySelectorAll('.contents a')].map(one => getComputedStyle(one).verticalAlign)"
    )
    assert set(styles) == {"top"}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere_and_headings_nest(shown: Shown, name: str) -> None:
    page = shown.page(name, 1280)
    assert page.evaluate(DEAD_LINKS) == 0
    assert page.evaluate(REPEATED_IDS) == []
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map(one => +one.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in itertools.pairwise(levels))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_one_small_file_without_a_script(pages: dict[str, Path], name: str) -> None:
    html = pages[name].read_text(encoding="utf-8")
    assert len(html.encode()) < 300_000
    assert "<script" not in html
    assert "<b>gpj" not in html
