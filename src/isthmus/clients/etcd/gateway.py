"""etcd's JSON gateway: endpoints that stand in for one another, TLS, a token that is renewed, errors by name.

The gateway knows no user from a certificate, so one logs in by name and password; the client's certificate only
opens the connection, and etcd refuses one that has a common name (its embed/serve.go). A token ends with its time and
with every change of users or roles: then one logs in again.

A call asks one endpoint after the other until its time is up. What could not be sent is sent to the next; so is what
was sent and not answered. A write may therefore be carried out twice, or carried out and still fail here: callers
write whole documents, and transactions compare first, so that the second time changes nothing.

`requests` and no library for etcd: etcd3gw 2.7 has one endpoint, no passwords, and a watch that tells neither of
compaction nor of a stream that broke off; those for gRPC bring compiled code for each Python of the nodes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from threading import Lock
from typing import Any

import requests
from requests.adapters import HTTPAdapter

Body = Mapping[str, Any]

# How many threads may wait for etcd at a time without a connection having to be made again for each call.
CONNECTIONS = 32
# Between two rounds over all endpoints when none of them answered.
PAUSE_S = 0.1
# Without a leader a member cannot tell that it was cut off; a watch on it would only be silent (etcd, rpctypes).
_NEEDS_LEADER = {"Grpc-Metadata-Hasleader": "true"}
# etcd's own words (rpctypes): some come with a code that other errors have too, or as the reason of an ended watch.
_OLD_TOKEN = ("invalid auth token", "revision of auth store is old", "user name is empty")
_DENIED = ("permission denied", "authentication failed")
_COMPACTED = ("has been compacted",)
# Their answers come in parts, as long as the caller reads.
_STREAMS = {"watch", "maintenance/snapshot"}


class Code(IntEnum):
    """Codes of gRPC that say more than the message does."""

    DEADLINE_EXCEEDED = 4
    UNAVAILABLE = 14


class EtcdError(Exception):
    """etcd did not do what it was asked; the message says why."""


class UnavailableError(EtcdError):
    """No endpoint answered in time; a write may have been carried out."""


class DeniedError(EtcdError):
    """Wrong name or password, or something this user may not do."""


class CompactedError(EtcdError):
    """The revision asked for is no longer kept; read everything again."""


class TokenError(EtcdError):
    """The token is not, or no longer, good; nobody but a watch gets to see it."""


@dataclass(frozen=True, slots=True)
class Access:
    """How etcd is reached.

    Attributes:
        endpoints: https addresses of members; the one that answered last is asked first.
        ca: certificates that the servers' must be signed by.
        certificate: the client's own, which every server demands.
        key: of that certificate.
        user: etcd's user; empty: no login, for a cluster whose authentication is not on yet.
        password: of that user.
        timeout_s: of a call, all endpoints together.
        silence_s: a watch that hears nothing for so long connects again; longer than etcd's
            watch-progress-notify-interval.
    """

    endpoints: tuple[str, ...]
    ca: Path
    certificate: Path
    key: Path
    user: str = ""
    password: str = field(default="", repr=False)
    timeout_s: float = 5
    silence_s: float = 30


class Gateway:
    """The gateways of one cluster; may be used by several threads."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._token = ""
        self._lock = Lock()
        self._first = access.endpoints[0]
        self._session = requests.Session()
        # Else a proxy or a netrc file of the environment would get hold of what goes to etcd.
        self._session.trust_env = False
        self._session.verify = str(access.ca)
        self._session.cert = (str(access.certificate), str(access.key))
        self._session.mount("https://", HTTPAdapter(pool_connections=len(access.endpoints), pool_maxsize=CONNECTIONS))

    def call(self, path: str, body: Body) -> dict[str, Any]:
        """Ask for one answer, e.g. of `kv/range`.

        Raises:
            EtcdError: one of its kinds.
        """
        with self._ask(path, body, None) as answer:
            found: dict[str, Any] = answer.json()
        return found

    def stream(self, path: str, body: Body) -> requests.Response:
        """Ask for a stream of answers; the caller closes it.

        Raises:
            EtcdError: one of its kinds.
        """
        return self._ask(path, body, self.access.silence_s)

    def forget_token(self) -> None:
        """Log in again before the next call: a stream was told that its token is old."""
        with self._lock:
            self._token = ""

    def close(self) -> None:
        """Close all connections that nobody uses."""
        self._session.close()

    def _ask(self, path: str, body: Body, silence_s: float | None) -> requests.Response:
        deadline = time.monotonic() + self.access.timeout_s
        reasons: dict[str, str] = {}
        while True:
            for endpoint, share_s in self._shares(deadline):
                try:
                    answer = self._with_token(endpoint, path, body, (share_s, silence_s or share_s))
                except UnavailableError as error:
                    reasons[endpoint] = str(error)
                else:
                    self._first = endpoint
                    return answer
            if time.monotonic() + PAUSE_S >= deadline:
                document = "; ".join(f"{endpoint}: {reason}" for endpoint, reason in reasons.items())
                raise UnavailableError(document or "no time left to ask anybody")
            time.sleep(PAUSE_S)

    def _shares(self, deadline: float) -> Iterator[tuple[str, float]]:
        """Yield endpoints with the seconds that each may take, so that a silent one leaves time for the others."""
        endpoints = sorted(self.access.endpoints, key=lambda endpoint: endpoint != self._first)
        for position, endpoint in enumerate(endpoints):
            left_s = deadline - time.monotonic()
            if left_s > 0:
                yield endpoint, left_s / (len(endpoints) - position)

    def _with_token(self, endpoint: str, path: str, body: Body, timeout: tuple[float, float]) -> requests.Response:
        if not self.access.user:
            return self._post(endpoint, path, body, timeout, "")
        token = self._token or self._login(endpoint, "", timeout)
        try:
            return self._post(endpoint, path, body, timeout, token)
        except TokenError:
            token = self._login(endpoint, token, timeout)
        try:
            return self._post(endpoint, path, body, timeout, token)
        except TokenError as error:
            # Users were changed, or its time was over, just after it was given: as good as no answer yet.
            raise UnavailableError(f"a new token is good no longer: {error}") from error

    def _login(self, endpoint: str, failed: str, timeout: tuple[float, float]) -> str:
        """Return a token other than the failed one; of several threads one fetches it."""
        with self._lock:
            if self._token == failed:
                name = {"name": self.access.user, "password": self.access.password}
                with self._post(endpoint, "auth/authenticate", name, timeout, "") as answer:
                    self._token = answer.json()["token"]
            return self._token

    def _post(
        self, endpoint: str, path: str, body: Body, timeout: tuple[float, float], token: str
    ) -> requests.Response:
        headers = {**_NEEDS_LEADER, **({"Authorization": token} if token else {})}
        try:
            answer = self._session.post(
                f"{endpoint}/v3/{path}", json=body, headers=headers, timeout=timeout, stream=True, allow_redirects=False
            )
            if answer.status_code != requests.codes.ok:
                with answer:
                    raise refusal(answer.text, answer.status_code)
            if path not in _STREAMS:
                # Read here, where a stream that breaks off still leads to another endpoint.
                _ = answer.content
        except requests.RequestException as error:
            raise UnavailableError(_reason(error)) from error
        return answer


def refusal(text: str, status: int = 0) -> EtcdError:
    """Name what the gateway refused with, from the text of its answer."""
    try:
        document = json.loads(text)
        code, message = int(document["code"]), str(document["message"])
    except (ValueError, TypeError, KeyError):
        # The gateway's own words, or those of a server that is something else.
        kind = EtcdError if status in range(400, 500) else UnavailableError
        return kind(f"status {status}: {text.strip()[:200]}")
    return named(code, message)


def named(code: int, message: str) -> EtcdError:
    """Name an error of etcd by gRPC's code and its message."""
    words = {TokenError: _OLD_TOKEN, DeniedError: _DENIED, CompactedError: _COMPACTED}
    meant = (kind for kind, document in words.items() if any(part in message for part in document))
    kind = next(meant, UnavailableError if code in set(Code) else EtcdError)
    return kind(message)


def _reason(error: requests.RequestException) -> str:
    if isinstance(error, requests.exceptions.SSLError):
        return f"TLS: {error}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    return f"{type(error).__name__}: {error}"
