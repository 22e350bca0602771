"""etcd's JSON gateway: failover between endpoints, TLS, token renewal, named errors.

The gateway knows no user from a certificate, so one logs in by name and password; the client's certificate only
opens the connection, and etcd refuses one that has a common name (its embed/serve.go). A token ends with its time and
with every change of users or roles: then one logs in again.

A call asks one endpoint after the other until its time is up. What could not be sent is sent to the next; so is what
was sent and not answered. A write may therefore be carried out twice, or carried out and still fail here: callers
write whole documents, and transactions compare first, so that the second time changes nothing.

By hand on `transport`, and no library for etcd: etcd3gw 2.7 has one endpoint, no passwords, and a watch that reports
neither a compaction nor a stream that broke off; those for gRPC bring compiled code for each Python of the nodes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from isthmus.clients.etcd.transport import Stream, Transport, Waiting
from isthmus.clients.http import ClosedError
from isthmus.support.backoff import Backoff
from isthmus.support.tls import ClientTls

Body = Mapping[str, Any]
Result = TypeVar("Result")

# A member without a leader does not know that it was cut off; a watch on it would only be silent (etcd, rpctypes).
_NEEDS_LEADER = {"Grpc-Metadata-Hasleader": "true"}
# etcd's own words (rpctypes): some come with a code that other errors have too, or as the reason of an ended watch.
_OLD_TOKEN = ("invalid auth token", "revision of auth store is old", "user name is empty")
_DENIED = ("permission denied", "authentication failed")
_COMPACTED = ("has been compacted",)
_OK = 200


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
        pauses_s: the first and the longest pause between two rounds over all endpoints when none of them answered.
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
    pauses_s: tuple[float, float] = (0.1, 1.0)


@dataclass(frozen=True, slots=True)
class _Request:
    """What one endpoint is asked, within its share of the time."""

    endpoint: str
    path: str
    body: Body = field(repr=False)
    share_s: float
    token: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        return f"{self.endpoint}/v3/{self.path}"

    @property
    def content(self) -> bytes:
        return json.dumps(self.body).encode()

    @property
    def headers(self) -> Mapping[str, str]:
        return {**_NEEDS_LEADER, **({"Authorization": self.token} if self.token else {})}


class Gateway:
    """The gateways of one cluster; may be used by several threads."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._token = ""
        self._lock = Lock()
        self._first = access.endpoints[0]
        self._transport = Transport(ClientTls(access.ca, access.certificate, access.key))

    def call(self, path: str, body: Body) -> dict[str, Any]:
        """Ask for one answer, e.g. of `kv/range`.

        Raises:
            EtcdError: one of its kinds.
        """
        found: dict[str, Any] = json.loads(self._ask(path, body, self._post))
        return found

    def stream(self, path: str, body: Body) -> Stream:
        """Ask for a stream of answers; the caller closes it.

        Raises:
            EtcdError: one of its kinds.
        """
        return self._ask(path, body, self._open)

    def forget_token(self) -> None:
        """Log in again before the next call: a stream's token has expired."""
        with self._lock:
            self._token = ""

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def _ask(self, path: str, body: Body, send: Callable[[_Request], Result]) -> Result:
        deadline = time.monotonic() + self.access.timeout_s
        reasons: dict[str, str] = {}
        backoff = Backoff(*self.access.pauses_s)
        while True:
            for endpoint, share_s in self._shares(deadline):
                try:
                    answer = self._with_token(_Request(endpoint, path, body, share_s), send)
                except UnavailableError as error:
                    reasons[endpoint] = str(error)
                else:
                    self._first = endpoint
                    return answer
            pause_s = backoff.next_s()
            if time.monotonic() + pause_s >= deadline:
                document = "; ".join(f"{endpoint}: {reason}" for endpoint, reason in reasons.items())
                raise UnavailableError(document or "no time left to ask anybody")
            time.sleep(pause_s)

    def _shares(self, deadline: float) -> Iterator[tuple[str, float]]:
        """Yield endpoints with the seconds that each may take, so that a silent one leaves time for the others."""
        endpoints = sorted(self.access.endpoints, key=lambda endpoint: endpoint != self._first)
        for position, endpoint in enumerate(endpoints):
            left_s = deadline - time.monotonic()
            if left_s > 0:
                yield endpoint, left_s / (len(endpoints) - position)

    def _with_token(self, request: _Request, send: Callable[[_Request], Result]) -> Result:
        if not self.access.user:
            return send(request)
        token = self._token or self._login(request, "")
        try:
            return send(replace(request, token=token))
        except TokenError:
            token = self._login(request, token)
        try:
            return send(replace(request, token=token))
        except TokenError as error:
            # Users were changed, or its time was over, just after it was given: as good as no answer yet.
            raise UnavailableError(f"a new token is good no longer: {error}") from error

    def _login(self, request: _Request, failed: str) -> str:
        """Return a token other than the failed one; of several threads one fetches it."""
        with self._lock:
            if self._token == failed:
                name = {"name": self.access.user, "password": self.access.password}
                self._token = json.loads(self._post(replace(request, path="auth/authenticate", body=name)))["token"]
            return self._token

    def _post(self, request: _Request) -> bytes:
        waiting = Waiting(request.share_s, request.share_s)
        with _named():
            answer = self._transport.post(request.url, request.content, request.headers, waiting)
            if answer.status != _OK:
                raise refusal(answer.content.decode(errors="replace"), answer.status)
            return answer.content

    def _open(self, request: _Request) -> Stream:
        waiting = Waiting(request.share_s, self.access.silence_s)
        with _named():
            stream = self._transport.stream(request.url, request.content, request.headers, waiting)
            if stream.status != _OK:
                with stream:
                    raise refusal(stream.text(), stream.status)
            return stream


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except ClosedError as error:
        raise EtcdError(str(error)) from error
    except OSError as error:
        # Also of certificates that cannot be read: they are, when they were renewed.
        raise UnavailableError(str(error)) from error


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
