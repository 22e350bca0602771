"""A log whose home takes nothing: the program goes on, and the log says what it lacks."""

import asyncio
import errno
import os

import pytest

from isthmus.podproto.logs import STDOUT
from isthmus.supervisor.containers import logs
from isthmus.supervisor.containers.logs import LogWriter
from tests.support import virtual_time
from tests.support.fakes import homes

LINE = b"x" * 1000 + b"\n"


class Home:
    """Takes what is written, or fails, or does not answer."""

    error = 0
    is_silent = False

    def __call__(self, work, then):
        if self.is_silent:
            return
        if self.error:
            then(OSError(self.error, os.strerror(self.error)))
        else:
            homes.inline(work, then)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.ESTALE])
def test_what_the_home_did_not_take_is_counted_where_it_would_stand(tmp_path, capfd, number):
    async def main(clock):
        home = Home()
        log = LogWriter(tmp_path, 0, home)
        log.write(STDOUT, b"first\n")
        home.error = number
        log.write(STDOUT, LINE * 3000)
        assert sum(map(len, log.waiting)) <= logs.WAITING_BYTES
        await asyncio.sleep(5 * logs.RETRY_S)
        home.error = 0
        await asyncio.sleep(2 * logs.RETRY_S)
        log.write(STDOUT, b"last\n")
        log.close()
        return [line.split(b" ", 3)[3] for line in log.path.read_bytes().splitlines()]

    first, *kept, marker, last = virtual_time.run(main)
    assert (first, last, {*kept}) == (b"first", b"last", {LINE.strip()})
    assert 500 < len(kept) < 2000
    assert marker.startswith(b"[isthmus] %d lines are missing: the home did not take them" % (3000 - len(kept)))
    assert capfd.readouterr().err.count("cannot be written") == 1


@pytest.mark.parametrize("fault", ["error", "is_silent"])
def test_program_never_waits_for_long(tmp_path, fault):
    async def main(clock):
        home = Home()
        log = LogWriter(tmp_path, 0, home)
        log.write(STDOUT, b"first\n")
        setattr(home, fault, errno.ENOSPC)
        began_s = clock()
        async with asyncio.timeout(60):
            for _ in range(3000):
                log.write(STDOUT, LINE)
                await log.room()
        return clock() - began_s

    assert virtual_time.run(main) <= 2


def test_handle_that_a_server_has_forgotten_is_opened_again(tmp_path, monkeypatch):
    def forgotten(*_):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    file = logs._File(tmp_path / "0.log", 0)
    file.append(b"one\n")
    (tmp_path / "0.log").rename(tmp_path / "aside")
    with monkeypatch.context() as patch:
        patch.setattr(logs.os, "write", forgotten)
        with pytest.raises(OSError, match="Stale"):
            file.append(b"two\n")
    file.append(b"two\n")
    file.close()
    assert (tmp_path / "0.log").read_text() == "two\n"
