"""A resumable watch: after a failure it continues from its last revision, at any endpoint.

Every event is delivered exactly once; where that is impossible, because etcd has compacted the revisions
in between or was set back to an older state, the watch ends with CompactedError and everything is to be read again.
etcd sends its revision when there are no events, so silence means a dead connection.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from threading import Event as Flag
from threading import Lock
from typing import Any

from isthmus.clients.etcd import wire
from isthmus.clients.etcd.gateway import Code, CompactedError, EtcdError, Gateway, TokenError, UnavailableError, named
from isthmus.clients.etcd.transport import Stream
from isthmus.clients.etcd.wire import Changes
from isthmus.clients.http import NoAnswerError
from isthmus.support.backoff import Backoff

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0


class Watch:
    """Changes below a prefix, in order; iterate over it in one thread, close it from any.

    Attributes:
        revision: the last one delivered.
        connected: whether etcd is being listened to now.
    """

    def __init__(self, gateway: Gateway, prefix: str, revision: int, log: Callable[[str], None]) -> None:
        """See `Etcd.watch`."""
        self.revision = revision
        self.connected = False
        self._gateway = gateway
        self._prefix = prefix
        self._log = log
        self._closed = Flag()
        self._lock = Lock()
        self._answer: Stream | None = None

    def __iter__(self) -> Iterator[Changes]:
        """Yield changes until closed.

        Raises:
            EtcdError: going on is of no use: CompactedError, DeniedError, or a refusal nobody foresaw.
        """
        backoff = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        while not self._closed.is_set():
            try:
                for changes in self._listen():
                    backoff.reset()
                    yield changes
            except TokenError:
                self._gateway.forget_token()
            except UnavailableError as error:
                if not self._closed.is_set():
                    self._log(f"watch of etcd broke off at revision {self.revision}: {error}")
            finally:
                self.connected = False
            self._closed.wait(backoff.next_s())

    def close(self) -> None:
        """End the iteration, also one that waits for etcd in another thread."""
        self._closed.set()
        with self._lock:
            if self._answer is not None:
                self._answer.close()

    def _listen(self) -> Iterator[Changes]:
        # From what is known already: a watch that begins at a revision still to come gets no progress notifications.
        begin = {"start_revision": str(max(self.revision, 1)), "progress_notify": True}
        request = {**wire.prefix_range(self._prefix), **begin}
        answer = self._gateway.stream("watch", {"create_request": request})
        with answer:
            with self._lock:
                self._answer = answer
            try:
                for line in self._lines(answer):
                    changes = self._read(json.loads(line))
                    if changes:
                        self.revision = changes.revision
                        yield changes
            finally:
                with self._lock:
                    self._answer = None

    def _lines(self, answer: Stream) -> Iterator[bytes]:
        try:
            for line in answer.lines():
                if self._closed.is_set():
                    return
                yield line
        except NoAnswerError as error:
            raise UnavailableError(str(error)) from error
        raise UnavailableError("etcd ended the stream")

    def _read(self, message: Mapping[str, Any]) -> Changes | None:
        if "error" in message:
            # Whatever else it was, the next endpoint may do better.
            raise named(Code.UNAVAILABLE, str(message["error"].get("message")))
        result = message["result"]
        if result.get("canceled"):
            raise _reason(result)
        if result.get("created"):
            self.connected = True
            self._check_order(wire.revision(result))
            return None
        events = wire.events(result)
        # Of a watch that catches up etcd names the store's revision, with events of older ones still to come.
        revision = events[-1].revision if events else wire.revision(result)
        news = tuple(event for event in events if event.revision > self.revision)
        return Changes(revision, news) if news or revision > self.revision or not events else None

    def _check_order(self, revision: int) -> None:
        if revision < self.revision:
            raise CompactedError(f"etcd is at revision {revision}, older than {self.revision}: it was set back")


def _reason(result: Mapping[str, Any]) -> EtcdError:
    if "compact_revision" in result:
        return CompactedError(f"revisions up to {result['compact_revision']} are no longer kept")
    document = str(result.get("cancel_reason", ""))
    return named(Code.UNAVAILABLE, document or "etcd canceled the watch")
