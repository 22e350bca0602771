"""What only an unlucky moment shows of a real etcd."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from isthmus.clients.etcd.gateway import EtcdError
from isthmus.clients.etcd.watch import Watch
from isthmus.clients.http import NoAnswerError

LINE = {"result": {"header": {"revision": "2"}, "events": [{"kv": {"key": "YQ==", "mod_revision": "2"}}]}}


class Torn:
    """A stream of one change that then breaks off, as one does that another thread closes."""

    def __init__(self) -> None:
        self.closed = 0
        self.before_the_end = lambda: None

    def __enter__(self) -> Torn:
        """As a Stream."""
        return self

    def __exit__(self, *_: object) -> None:
        """As a Stream."""
        self.close()

    def lines(self) -> Iterator[bytes]:
        yield json.dumps(LINE).encode()
        self.before_the_end()
        raise NoAnswerError("cut off")

    def close(self) -> None:
        self.closed += 1


class Gateway:
    """Gives streams, then says that it was closed."""

    def __init__(self, *streams: Torn) -> None:
        self.streams = list(streams)

    def stream(self, path: str, body: object) -> Torn:
        if not self.streams:
            raise EtcdError("the client was closed")
        return self.streams.pop(0)


def test_watch_that_is_closed_while_it_waits_ends_in_silence():
    stream = Torn()
    watch = Watch(Gateway(stream), "", 1, pytest.fail)
    stream.before_the_end = watch.close
    assert [changes.revision for changes in watch] == [2]
    assert stream.closed


def test_watch_that_is_closed_between_two_changes_ends():
    watch = Watch(Gateway(Torn()), "", 1, pytest.fail)
    changes = iter(watch)
    assert next(changes).revision == 2
    watch.close()
    assert list(changes) == []


def test_watch_that_breaks_off_says_so_and_goes_on_until_its_client_is_closed():
    said: list[str] = []
    watch = Watch(Gateway(Torn(), Torn()), "", 1, said.append)
    with pytest.raises(EtcdError, match="the client was closed"):
        list(watch)
    assert said == ["watch of etcd broke off at revision 2: cut off"] * 2
