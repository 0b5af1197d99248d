"""What `fitladder go` sends as the answer: the words that were typed, and no others in their place."""

from types import SimpleNamespace
from typing import Any

import pytest

from fitladder.cli import go as command
from fitladder.errors import GoRefused


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    forms: list[dict[str, Any]] = []
    ask = SimpleNamespace(key="x probe@384", requester="Jan", binding_sha256="ab")
    ended = SimpleNamespace(state_type="COMPLETED", state_name="Completed", message="dispatched", run_id="1")
    for name, value in {
        "api_from_environment": lambda: SimpleNamespace(check_up=lambda: None),
        "_waiting": lambda *_: SimpleNamespace(run_id="1"),
        "input_schema": lambda *_: {"properties": {"expires": {"default": "2030-01-01T00:00:00Z"}}},
        "ask_of_schema": lambda _: ask,
        "resume_run": lambda _api, _run, form: forms.append(form),
        "follow": lambda *_, **__: ended,
        "getpass": SimpleNamespace(getuser=lambda: "login"),
    }.items():
        monkeypatch.setattr(command, name, value)
    return forms


@pytest.mark.parametrize(("typed", "reviewer"), [(None, "login"), ("", ""), ("Eva", "Eva")])
def test_an_empty_reviewer_is_not_the_login(
    sent: list[dict[str, Any]], typed: str | None, reviewer: str
) -> None:
    command.go(["x"], reviewer=typed, binding="ab", all_checked=True)
    assert [form["reviewer"] for form in sent] == [reviewer]


@pytest.mark.parametrize("no_go", [False, True])
def test_a_binding_that_is_not_the_plans_is_sent_nowhere_and_the_right_one_is_not_told(
    sent: list[dict[str, Any]], no_go: bool
) -> None:
    with pytest.raises(GoRefused, match="is not the plan's") as refusal:
        command.go(["x"], binding="cd", all_checked=True, no_go=no_go)
    assert "ab" not in str(refusal.value).split()
    assert "'ab'" not in str(refusal.value)
    assert sent == []
    command.go(["x"], binding=" ab\n", all_checked=True)
    assert [form["binding_sha256"] for form in sent] == ["ab"]
