"""A reviewer in a real browser: reads the plan, is refused twice by the form, then approves one launch.

With FITLADDER_SCREENSHOT=PATH the filled-in form is kept there; otherwise nothing is written to the tree.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright
from support.prefect_server import PrefectServer

from fitladder.records.approval import CHECKLIST

pytestmark = [pytest.mark.server, pytest.mark.browser]
CHROMIUM = Path("/usr/bin/chromium")
PATIENCE_MS = 20_000


@pytest.fixture
def page() -> Iterator[Page]:
    if not CHROMIUM.exists():
        pytest.skip("no /usr/bin/chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1100, "height": 1240})
        browser.close()


def _field(form: Locator, label: str) -> Locator:
    return form.locator(".schema-form-property").filter(
        has=form.page.locator(".schema-form-property__label", has_text=re.compile(f"^{re.escape(label)}"))
    )


def test_a_reviewer_approves_one_launch_in_the_interface(prefect_server: PrefectServer, page: Page) -> None:
    prefect = prefect_server
    prefect.checkout.script(outcomes=["close:20"])
    experiment = prefect.fresh_experiment()
    outside: list[str] = []
    page.on("request", lambda request: outside.append(request.url) if _leaves(request.url) else None)
    prefect.need("cpu")
    waiting = prefect.suspended(prefect.launch(experiment, requester="olga"))
    page.goto(f"{prefect.api.ui_url}/runs/flow-run/{waiting.run_id}")
    page.get_by_text("Artifacts", exact=True).click(timeout=PATIENCE_MS)
    page.get_by_text(re.compile("^plan-probe-64")).first.click(timeout=PATIENCE_MS)
    expect(page.get_by_text("4 sequences fit").first).to_be_visible(timeout=PATIENCE_MS)
    [digest] = re.findall(r"\b[0-9a-f]{64}\b", page.locator("main, body").first.inner_text())[:1]

    page.goto(f"{prefect.api.ui_url}/runs/flow-run/{waiting.run_id}")
    page.get_by_role("button", name="Resume").first.click(timeout=PATIENCE_MS)
    form = page.locator(".p-modal__card")
    expect(form.get_by_text("olga asks for")).to_be_visible(timeout=PATIENCE_MS)
    _field(form, "Verdict").locator("textarea").fill("GO")
    reviewer = _field(form, "Reviewer").locator("textarea")
    binding = _field(form, "Binding SHA-256").locator("textarea")
    for text in CHECKLIST.values():
        _field(form, text).get_by_role("switch").click()
    submit = form.get_by_role("button", name="Submit")

    binding.fill(digest)
    submit.click()
    expect(form.get_by_text("'reviewer' is a required property")).to_be_visible(timeout=PATIENCE_MS)

    reviewer.fill("jan")
    binding.fill(digest[::-1])
    with page.expect_response(re.compile("/resume$"), timeout=PATIENCE_MS) as answer:
        submit.click()
    assert answer.value.json()["status"] == "REJECT"
    toast = page.get_by_text("Validation failed for field 'binding_sha256'").first
    expect(toast).to_be_visible(timeout=PATIENCE_MS)
    assert prefect.kinds(experiment) == ["asked"]

    binding.fill(digest)
    expect(toast).to_be_hidden(timeout=PATIENCE_MS)
    if kept := os.environ.get("FITLADDER_SCREENSHOT"):
        form.screenshot(path=kept)
    with page.expect_response(re.compile("/resume$"), timeout=PATIENCE_MS) as answer:
        submit.click()
    assert answer.value.status == 201, answer.value.text()
    assert prefect.wait(waiting).state_name == "Completed"
    assert prefect.kinds(experiment) == ["asked", "go"]
    assert prefect.phase(experiment).state_type == "SCHEDULED"
    assert outside == []
    prefect.settle()


def _leaves(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:"))
