"""Speaking to a server: busy answers are tried again, everything else is one clear error."""

import base64
import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from fitladder.errors import EnvironmentNotReady, GoRefused
from fitladder.prefect_api import client
from fitladder.prefect_api.client import PrefectApi, api_from_environment
from fitladder.prefect_api.runs import FlowRun, create_run, resume_run


class Scripted(http.server.BaseHTTPRequestHandler):
    """Answers from a list, one a request; remembers what was asked."""

    answers: ClassVar[list[tuple[int, object]]] = []
    seen: ClassVar[list[tuple[str, str, str | None]]] = []
    bodies: ClassVar[list[tuple[str, Any]]] = []

    def _answer(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        type(self).bodies.append((self.path, json.loads(data) if data else None))
        type(self).seen.append((self.command, self.path, self.headers.get("Authorization")))
        status, body = type(self).answers.pop(0)
        data = json.dumps(body).encode() if body is not None else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = _answer  # noqa: N815 - the base class names them

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def api() -> Iterator[PrefectApi]:
    Scripted.answers, Scripted.seen, Scripted.bodies = [], [], []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield PrefectApi(f"http://127.0.0.1:{server.server_port}/api", "who:secret")
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.fixture
def silent_address() -> Iterator[str]:
    """A port that takes connections and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/api"


def test_a_busy_server_is_asked_again_and_the_auth_string_is_sent(api: PrefectApi) -> None:
    Scripted.answers = [(503, None), (200, {"ok": 1})]
    assert api.read("/x") == {"ok": 1}
    assert len(Scripted.seen) == 2
    assert Scripted.seen[0][2] == "Basic " + base64.b64encode(b"who:secret").decode()


def test_what_is_not_there_is_none_and_what_is_refused_is_an_error(api: PrefectApi) -> None:
    Scripted.answers = [(404, {"detail": "no"}), (401, None), (422, {"detail": "bad"})]
    assert api.read("/x") is None
    with pytest.raises(EnvironmentNotReady, match="PREFECT_API_AUTH_STRING"):
        api.read("/x")
    with pytest.raises(EnvironmentNotReady, match="HTTP 422"):
        api.find("/x", {})


def test_a_server_that_stays_busy_is_given_up_within_the_bound(api: PrefectApi) -> None:
    Scripted.answers = [(503, None)] * 50
    began = time.monotonic()
    with pytest.raises(EnvironmentNotReady, match=r"no answer .* got HTTP 503"):
        api.read("/x", patience_s=1.0)
    assert time.monotonic() - began < 3
    assert 2 <= len(Scripted.seen) < 20


def test_a_busy_server_gets_one_idempotency_key_for_a_run_that_is_sent_twice(api: PrefectApi) -> None:
    run = {"id": "r", "name": "n", "flow_id": "f"}
    Scripted.answers = [(200, {"id": "d"}), (503, None), (201, run), (200, [{"id": "f", "name": "launch"}])]
    create_run(api, "launch/launch", {"experiment": "x"})
    first, second = (body for path, body in Scripted.bodies if path.endswith("create_flow_run"))
    assert first == second
    assert len(first["idempotency_key"]) == 36


def test_an_answer_that_never_comes_is_one_line(monkeypatch: pytest.MonkeyPatch, silent_address: str) -> None:
    monkeypatch.setattr(client, "REQUEST_TIMEOUT_S", 0.2)
    with pytest.raises(EnvironmentNotReady, match=r"no answer .* got timed out"):
        PrefectApi(silent_address).read("/x", patience_s=0.0)


def test_no_proxy_is_asked_for_loopback(api: PrefectApi, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    Scripted.answers = [(200, {"ok": 1})]
    assert api.read("/x", patience_s=0.0) == {"ok": 1}
    with pytest.raises(
        EnvironmentNotReady, match="refused"
    ):  # the proxy's port: another host goes through it
        PrefectApi("http://elsewhere.invalid/api").read("/x", patience_s=0.0)


def test_the_auth_string_is_in_no_message_and_no_repr(api: PrefectApi) -> None:
    Scripted.answers = [(401, None), (500, {"detail": "broken"}), (503, None)]
    said = [repr(api)]
    for _ in range(3):
        with pytest.raises(EnvironmentNotReady) as refused:
            api.read("/x", patience_s=0.0)
        said.append(str(refused.value))
    with pytest.raises(EnvironmentNotReady) as refused:
        api_from_environment({"PREFECT_API_URL": "http://who:secret@h:1/api"})
    said.append(str(refused.value))
    encoded = base64.b64encode(b"who:secret").decode()
    assert not [line for line in said if "secret@" in line or "who:" in line or encoded in line]


@pytest.mark.parametrize("url", ["h:1", "ftp://h/api", "http://", "http://h:port", "http://\x00"])
def test_an_address_that_is_none_is_one_line(url: str) -> None:
    with pytest.raises(EnvironmentNotReady, match="PREFECT_API_URL is no address"):
        api_from_environment({"PREFECT_API_URL": url})


def test_nobody_there_is_one_line(api: PrefectApi) -> None:
    with pytest.raises(EnvironmentNotReady, match="fitladder server"):
        PrefectApi("http://127.0.0.1:9/api").read("/x", patience_s=0.0)
    with pytest.raises(EnvironmentNotReady, match="PREFECT_API_URL is not set"):
        api_from_environment({})
    assert api_from_environment({"PREFECT_API_URL": "http://h:1/"}).url == "http://h:1/api"


def test_a_rejected_answer_is_refused_although_the_status_is_200(api: PrefectApi) -> None:
    run = FlowRun("1", "calm-lynx", "launch", "PAUSED", "Suspended", "", {})
    reason = "Reason: Validation failed for field 'reviewer'."
    Scripted.answers = [
        (200, {"status": "REJECT", "details": {"reason": reason}}),
        (200, {"status": "ABORT", "details": {"reason": "Cannot resume a flow run that is not paused."}}),
        (201, {"status": "ACCEPT"}),
    ]
    with pytest.raises(GoRefused, match="reviewer"):
        resume_run(api, run, {})
    with pytest.raises(GoRefused, match="not paused"):
        resume_run(api, run, {})
    resume_run(api, run, {})


def test_a_person_does_not_wait_long_for_a_server_that_is_away() -> None:
    began = time.monotonic()
    with pytest.raises(EnvironmentNotReady, match=r"no answer .* refused; start it with `fitladder server`"):
        PrefectApi("http://127.0.0.1:1/api").check_up()
    assert time.monotonic() - began < 5


def test_a_busy_server_is_up(api: PrefectApi) -> None:
    Scripted.answers = [(503, None)]
    api.check_up()
    assert len(Scripted.seen) == 1
