"""The kubelet is found again while the home, which says where it is, cannot be read."""

import asyncio
import errno
import os

import pytest

from isthmus.supervisor import channel
from isthmus.supervisor.channel import Channel
from tests.support import virtual_time

WHERE = ("192.0.2.1", 10260, None)


def connected(monkeypatch, tmp_path, *answers):
    """Connect as often as the home is asked; return where to."""
    asked, places = iter(answers), []

    async def call(look, timeout_s):
        answer = next(asked)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def connection(address, port, **tls):
        places.append((address, port))
        return None, None

    async def main():
        one = Channel(tmp_path, None, call)
        for _ in answers:
            await one._connect()

    monkeypatch.setattr(channel.asyncio, "open_connection", connection)
    asyncio.run(main())
    return places


def stale():
    return OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def test_last_address_is_used_while_the_home_is_stale(monkeypatch, tmp_path):
    assert connected(monkeypatch, tmp_path, WHERE, stale(), stale()) == [WHERE[:2]] * 3


def test_address_that_was_never_read_is_an_error(monkeypatch, tmp_path):
    with pytest.raises(OSError, match="Stale"):
        connected(monkeypatch, tmp_path, stale())


def test_kubelet_that_stays_away_is_said_once(tmp_path, capfd):
    """The job's log lies on the home, and a pod may run for weeks."""

    async def call(look, timeout_s):
        raise stale()

    async def main(clock):
        task = asyncio.ensure_future(Channel(tmp_path, None, call).run())
        await asyncio.sleep(3600)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    virtual_time.run(main)
    assert capfd.readouterr().err.count("the kubelet is not there") == 1
