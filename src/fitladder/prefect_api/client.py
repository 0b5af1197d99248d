"""REST client of a Prefect server: JSON over httpx with bounded retries and one error type.

A request is sent again, with growing pauses, while the server is busy (HTTP 503 on SQLite) or does not
answer; every write that callers make is idempotent, carries an idempotency key, or is taken only once by the
server. It knows no flow and no experiment.
"""

import base64
import ipaddress
import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import httpx
import tenacity

from fitladder.errors import EnvironmentNotReady

__all__ = ["Answer", "PrefectApi", "api_from_environment", "is_loopback"]

PATIENCE_S = 30.0
GREETING_S = 1.0  # a person waits at the terminal
REQUEST_TIMEOUT_S = 20.0
PAUSES = tenacity.wait_exponential_jitter(multiplier=0.1, max=1.0, jitter=0.2)
BUSY = frozenset({429, 502, 503, 504})
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """A reply: HTTP status and its JSON, None where it has none."""

    status: int
    body: Any


@dataclass(frozen=True)
class PrefectApi:
    """One server's REST API.

    Args:
        url: address that ends in `/api`, without a user or a secret in it.
        auth: the server's one shared basic-auth string `USER:SECRET`, if any; no message or repr has it.
    """

    url: str
    auth: str | None = field(default=None, repr=False)

    @property
    def ui_url(self) -> str:
        """Address of the web interface."""
        return self.url.removesuffix("/api")

    @cached_property
    def _client(self) -> httpx.Client:
        """Keeps no connection, asks no proxy for loopback, follows no redirect with the secret."""
        address = httpx.URL(self.url)
        headers = {}
        if self.auth:
            headers["Authorization"] = "Basic " + base64.b64encode(self.auth.encode()).decode()
        return httpx.Client(
            headers=headers,
            timeout=REQUEST_TIMEOUT_S,
            limits=httpx.Limits(max_keepalive_connections=0),
            trust_env=not is_loopback(address.host),
            verify=address.scheme == "https",  # loading certificates takes 0.2 s, needless for http
        )

    def request(self, method: str, path: str, body: Any = None, *, patience_s: float = PATIENCE_S) -> Answer:
        """Send one request, and the same again while the server is busy or away.

        Args:
            path: route below the API, with its leading slash.
            body: what is sent as JSON; None sends no body.
            patience_s: no attempt begins after this many seconds; one takes at most `REQUEST_TIMEOUT_S`.

        Raises EnvironmentNotReady where the last attempt found no server, or a busy one.
        """
        return self._retried(patience_s, _is_busy, method, path, body)

    def _retried(
        self, patience_s: float, wanting: Callable[[Answer], bool], method: str, path: str, body: Any = None
    ) -> Answer:
        """The first answer that is not `wanting`."""
        attempts = tenacity.Retrying(
            stop=tenacity.stop_before_delay(patience_s),
            wait=PAUSES,
            retry=tenacity.retry_if_exception_type(httpx.RequestError) | tenacity.retry_if_result(wanting),
            before_sleep=lambda state: log.debug("%s %s again: %s", method, path, _problem(state.outcome)),
        )
        try:
            return attempts(self._once, method, path, body)
        except tenacity.RetryError as gave_up:
            raise self._no_answer(_problem(gave_up.last_attempt)) from gave_up.last_attempt.exception()
        except httpx.InvalidURL as bad:
            raise self._no_answer(str(bad)) from bad

    def _no_answer(self, problem: str) -> EnvironmentNotReady:
        return EnvironmentNotReady(
            f"no answer from the Prefect server at {self.url}",
            got=problem,
            do="start it with `fitladder server`, or set PREFECT_API_URL",
        )

    def _once(self, method: str, path: str, body: Any) -> Answer:
        reply = self._client.request(method, self.url + path, json=body)
        return Answer(reply.status_code, _parsed(reply.content))

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
        """Refuse a server that does not answer at all; a busy one is left to the calls that follow.

        Raises EnvironmentNotReady within about `GREETING_S` where nothing listens.
        """
        self._retried(GREETING_S, lambda _: False, "GET", "/health")

    def is_healthy(self) -> bool:
        """Whether a server answers now, asked once."""
        try:
            return self.request("GET", "/health", patience_s=0.0).status == 200
        except EnvironmentNotReady:
            return False


def _problem(attempt: tenacity.Future | None) -> str:
    """What was wrong with an attempt: its error, or the status of its answer."""
    if attempt is None:
        return "no attempt"
    error = attempt.exception()
    return (str(error) or type(error).__name__) if error else f"HTTP {attempt.result().status}"


def _is_busy(answer: Answer) -> bool:
    return answer.status in BUSY


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode(errors="replace")[:300]


def is_loopback(host: str) -> bool:
    """Whether `host` is reached by this machine alone; of names only `localhost` is known to be."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def api_from_environment(environment: Mapping[str, str] = os.environ) -> PrefectApi:
    """The server that PREFECT_API_URL names, with the secret of PREFECT_API_AUTH_STRING.

    Raises EnvironmentNotReady where it names none, or carries a secret that messages would show.
    """
    url = environment.get("PREFECT_API_URL", "").rstrip("/")
    if not url:
        raise EnvironmentNotReady(
            "PREFECT_API_URL is not set",
            need="http://HOST:PORT/api",
            do="start `fitladder server` and export the address that it prints",
        )
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host or address.userinfo:
        raise EnvironmentNotReady(
            "PREFECT_API_URL is no address of a server",
            got="a user or secret in it" if "@" in url else ascii(url)[:120],
            need="http://HOST:PORT/api",
            do="give the secret as PREFECT_API_AUTH_STRING" if "@" in url else None,
        )
    return PrefectApi(
        url if url.endswith("/api") else f"{url}/api", environment.get("PREFECT_API_AUTH_STRING")
    )
