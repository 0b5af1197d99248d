"""Speaking to a server: busy answers are tried again, everything else is one clear error."""

import base64
import http.server
import json
import threading
import time
from collections.abc import Iterator
from typing import ClassVar

import pytest

from fitladder.errors import EnvironmentNotReady, GoRefused
from fitladder.prefect_api.client import PrefectApi, api_from_environment
from fitladder.prefect_api.runs import FlowRun, resume_run


class Scripted(http.server.BaseHTTPRequestHandler):
    """Answers from a list, one a request; remembers what was asked."""

    answers: ClassVar[list[tuple[int, object]]] = []
    seen: ClassVar[list[tuple[str, str, str | None]]] = []

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
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
    Scripted.answers, Scripted.seen = [], []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield PrefectApi(f"http://127.0.0.1:{server.server_port}/api", "who:secret")
    server.shutdown()
    server.server_close()
    thread.join(10)


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
