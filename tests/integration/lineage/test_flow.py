"""The lineage flow's own words: its steps in order, on a real checkout, without a server in between."""

from pathlib import Path
from typing import Any

import pytest
from support import dvc_checkout as make

from fitladder.dvc_api.ingest import Ingested
from fitladder.dvc_api.publish import Carried
from fitladder.errors import RootRefused
from flows import lineage as flow
from tasks import lineage as steps

ID = make.ID


@pytest.fixture
def here(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Work in the checkout; tasks are called as what they wrap, the last card is kept."""
    monkeypatch.chdir(checkout)
    for name, value in make.environment(checkout).items():
        monkeypatch.setenv(name, value)
    for name in ("bring_in", "reproduce", "push", "check"):
        monkeypatch.setattr(steps, name, getattr(steps, name).fn)
    shown: list[Any] = []
    monkeypatch.setattr(steps, "show", shown.append)
    return shown


def test_the_flow_brings_in_pushes_checks_and_commits_nothing(
    here: list[Any], checkout: Path, tmp_path: Path
) -> None:
    head = make.git(checkout, "rev-parse", "HEAD")
    uses = f"data/approvals/{ID}.uses.jsonl"
    (checkout / uses).touch()
    done = flow.lineage.fn(ID, str(tmp_path / "root"))
    assert here == [done]
    assert (done.ingested.bundles, done.ingested.is_new, done.pushed_to) == (2, False, "here")
    assert done.report.is_file()
    assert done.git_commands[0] == f"git add dvc.lock data/approvals/{ID}.jsonl {uses} data/log/{ID}.jsonl"
    assert make.git(checkout, "rev-parse", "HEAD") == head


def test_without_a_root_it_takes_the_registered_one_or_says_which_variable_to_set(
    here: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FITLADDER_REHEARSAL_ROOT", raising=False)  # `make` sets it for the demo
    with pytest.raises(RootRefused, match="FITLADDER_REHEARSAL_ROOT"):
        flow.lineage.fn(ID)
    assert here == []


def test_the_card_links_the_page_and_says_what_to_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cards: list[str] = []
    monkeypatch.setattr(steps, "create_markdown_artifact", lambda text, **_: cards.append(text))
    page = tmp_path / "data" / "reports" / f"{ID}.html"
    ingested = Ingested(ID, tmp_path, 2, "0" * 64, is_new=True)
    steps.show.fn(Carried(ingested, page, tmp_path, None, ("git add dvc.lock", "git commit")))
    (card,) = cards
    assert f"]({page.as_uri()})" in card
    assert f"`fitladder report {ID} --open`" in card
    assert "pushed nowhere" in card
    assert "\ngit add dvc.lock\ngit commit\n" in card
