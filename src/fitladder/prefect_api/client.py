"""How do we speak to a Prefect server without importing Prefect? JSON over HTTP, a bounded wait, one error.

Reads and idempotent writes are tried again while the server is busy (503 on SQLite) or not up yet; nothing
else is. It knows no flow and no experiment.
"""

import base64
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fitladder.errors import EnvironmentNotReady

__all__ = ["Answer", "PrefectApi", "api_from_environment"]

PATIENCE_S = 30.0
GREETING_S = 1.0  # a person waits at the terminal
REQUEST_TIMEOUT_S = 20.0
BUSY = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Answer:
    """A reply: HTTP status and its JSON, None where it has none."""

    status: int
    body: Any


@dataclass(frozen=True)
class PrefectApi:
    """One server's REST API. `url` ends in `/api`; `auth` is its one shared basic-auth string, if any."""

    url: str
    auth: str | None = None

    @property
    def ui_url(self) -> str:
        """Where a person looks."""
        return self.url.removesuffix("/api")

    def request(self, method: str, path: str, body: Any = None, *, patience_s: float = PATIENCE_S) -> Answer:
        """One call. Raises EnvironmentNotReady where no answer comes within `patience_s`."""
        deadline = time.monotonic() + patience_s
        while True:
            try:
                answer = self._once(method, path, body)
            except OSError as error:  # urllib's errors, refused and reset connections, time-outs
                problem: object = getattr(error, "reason", error)
            else:
                if answer.status not in BUSY:
                    return answer
                problem = f"HTTP {answer.status}"
            if time.monotonic() >= deadline:
                raise self._no_answer(problem)
            time.sleep(0.3)

    def _no_answer(self, problem: object) -> EnvironmentNotReady:
        return EnvironmentNotReady(
            f"no answer from the Prefect server at {self.url}",
            got=problem,
            do="start it with `fitladder server`, or set PREFECT_API_URL",
        )

    def _once(self, method: str, path: str, body: Any) -> Answer:
        headers = {"Content-Type": "application/json"}
        if self.auth:
            headers["Authorization"] = "Basic " + base64.b64encode(self.auth.encode()).decode()
        call = urllib.request.Request(
            self.url + path,
            method=method,
            headers=headers,
            data=None if body is None else json.dumps(body).encode(),
        )
        try:
            with urllib.request.urlopen(call, timeout=REQUEST_TIMEOUT_S) as reply:
                return Answer(reply.status, _parsed(reply.read()))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, _parsed(error.read()))

    def read(self, path: str, *, patience_s: float = PATIENCE_S) -> Any:
        """GET; None for 404. Raises EnvironmentNotReady on any other failure."""
        return self._good(self.request("GET", path, patience_s=patience_s), path)

    def find(self, path: str, body: Mapping[str, Any]) -> Any:
        """POST to a filter route, which changes nothing."""
        return self._good(self.request("POST", path, dict(body)), path)

    def _good(self, answer: Answer, path: str) -> Any:
        if answer.status == 404:
            return None
        if answer.status in (401, 403):
            raise EnvironmentNotReady(
                f"the Prefect server at {self.url} wants its auth string",
                got=f"HTTP {answer.status}",
                do="set PREFECT_API_AUTH_STRING",
            )
        if answer.status >= 300:
            raise EnvironmentNotReady(
                f"the Prefect server refused {path}",
                got=f"HTTP {answer.status} {json.dumps(answer.body)[:300]}",
            )
        return answer.body

    def check_up(self) -> None:
        """Something answers there; a busy server is tried again by the calls that follow.

        Raises EnvironmentNotReady within about `GREETING_S` where nothing listens.
        """
        deadline = time.monotonic() + GREETING_S
        while True:
            try:
                self._once("GET", "/health", None)
            except OSError as error:
                if time.monotonic() >= deadline:
                    raise self._no_answer(getattr(error, "reason", error)) from error
                time.sleep(0.3)
            else:
                return

    def is_healthy(self) -> bool:
        """Whether a server answers right now."""
        try:
            return self.request("GET", "/health", patience_s=0.0).status == 200
        except EnvironmentNotReady:
            return False


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode(errors="replace")[:300]


def api_from_environment(environment: Mapping[str, str] = os.environ) -> PrefectApi:
    """The server that PREFECT_API_URL names. Raises EnvironmentNotReady where it names none."""
    url = environment.get("PREFECT_API_URL", "").rstrip("/")
    if not url:
        raise EnvironmentNotReady(
            "PREFECT_API_URL is not set",
            need="http://HOST:PORT/api",
            do="start `fitladder server` and export the address that it prints",
        )
    return PrefectApi(
        url if url.endswith("/api") else f"{url}/api", environment.get("PREFECT_API_AUTH_STRING")
    )
