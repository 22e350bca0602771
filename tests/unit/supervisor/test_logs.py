import asyncio
import os
import re

import pytest

from isthmus.podproto import logs as form
from isthmus.podproto.logs import STDERR, STDOUT, LogOptions
from isthmus.supervisor.containers import logs
from isthmus.supervisor.containers.logread import read
from isthmus.supervisor.containers.logs import LogWriter
from tests.support.fakes import homes

RECORD = re.compile(rb"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{9}Z (stdout|stderr) ([FP]) (.*)\n")


@pytest.fixture
def log(tmp_path):
    return LogWriter(tmp_path / "logs", 0, homes.inline)


def records(log):
    return [RECORD.fullmatch(line).groups() for line in log.path.read_bytes().splitlines(keepends=True)]


def shown(log, **wanted):
    async def whole():
        return b"".join([piece async for piece in read(log, LogOptions(**wanted), homes.call)])

    return asyncio.run(whole())


def test_lines_are_records_of_their_stream(log):
    log.write(STDOUT, b"one\ntw")
    log.write(STDERR, b"bad\n")
    log.write(STDOUT, b"o\n\nrest")
    log.close()
    streams = (b"stdout", b"stderr", b"stdout", b"stdout", b"stdout")
    assert records(log) == [(s, b"F", t) for s, t in zip(streams, (b"one", b"bad", b"two", b"", b"rest"), strict=True)]


def test_long_line_is_written_in_parts_and_read_as_one(log):
    line = b"x" * (form.LINE_BYTES * 2 + 5)
    log.write(STDOUT, line)
    log.write(STDOUT, b"\nnext\n")
    assert [mark for _, mark, _ in records(log)] == [b"P", b"P", b"F", b"F"]
    assert shown(log) == line + b"\nnext\n"
    assert shown(log, tail=2) == line + b"\nnext\n"
    assert shown(log, timestamps=True).count(b"Z ") == 2


def test_file_is_rotated_at_its_size_and_read_across(log, monkeypatch):
    monkeypatch.setattr(logs, "SIZE_BYTES", 1000)
    for number in range(30):
        log.write(STDOUT, b"line %d\n" % number)
    assert [path.name for path in log.files] == ["0.log.1", "0.log"]
    assert log.path.stat().st_size < 1000
    assert shown(log, tail=3) == b"line 27\nline 28\nline 29\n"


@pytest.mark.parametrize("chunk", [7, 50, 64, 1000])
def test_last_lines_are_found_from_the_end_of_both_files(log, monkeypatch, chunk):
    monkeypatch.setattr(logs, "SIZE_BYTES", 1000)
    monkeypatch.setattr(form, "_BLOCK_BYTES", chunk)
    lines = [b"line %d\n" % number for number in range(30)]
    for line in lines:
        log.write(STDOUT, line)
    kept = shown(log).splitlines(keepends=True)
    assert kept == lines[-len(kept) :]
    for count in (0, 1, 5, len(kept) - 1, len(kept), 99):
        assert shown(log, tail=count).splitlines(keepends=True) == (kept[-count:] if count else [])


def test_only_the_start_before_is_kept(tmp_path):
    for restart in range(4):
        LogWriter(tmp_path, restart, homes.inline).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.log", "3.log"]


@pytest.mark.parametrize(
    ("wanted", "reported"),
    [
        ({}, b"a\nb\nc\n"),
        ({"tail": 0}, b""),
        ({"tail": 1}, b"c\n"),
        ({"tail": 9}, b"a\nb\nc\n"),
        ({"limit_bytes": 3}, b"a\nb"),
        ({"limit_bytes": 0}, b""),
        ({"tail": 2, "limit_bytes": 3}, b"b\nc"),
    ],
)
def test_parts_of_a_log(log, wanted, reported):
    log.write(STDOUT, b"a\nb\nc\n")
    assert shown(log, **wanted) == reported


def test_nothing_older_is_shown(log):
    log.write(STDOUT, b"old\n")
    log.write(STDOUT, b"new\n")
    moment = log.path.read_bytes().splitlines()[1].split()[0].decode()
    request = {"since": moment}
    assert shown(log, since=LogOptions.read(request).since) == b"new\n"
    with pytest.raises(ValueError, match="no RFC 3339 moment"):
        LogOptions.read({"since": "yesterday"})


def test_follower_sees_what_comes_also_across_a_rotation(log, monkeypatch):
    monkeypatch.setattr(logs, "SIZE_BYTES", 200)

    async def follow():
        got = []

        async def reader():
            got.extend([piece async for piece in read(log, LogOptions(follow=True, tail=0), homes.call)])

        log.write(STDOUT, b"before\n")
        task = asyncio.ensure_future(reader())
        for number in range(20):
            await asyncio.sleep(0)
            log.write(STDOUT, b"%d\n" % number)
            await asyncio.sleep(0)
        log.close()
        await asyncio.wait_for(task, 5)
        return got

    assert asyncio.run(follow()) == [b"%d\n" % number for number in range(20)]


def test_end_of_a_log_as_a_message(log):
    log.write(STDOUT, b"".join(b"line %d\n" % number for number in range(300)))
    assert log.tail(2048, 2) == "line 298\nline 299"
    assert log.tail(10, 80) == "8\nline 299"


def test_log_is_read_in_small_parts(log, monkeypatch):
    """The supervisor has little memory, and a log of 20 MiB must not take it."""
    line, sizes = b"x" * 1000 + b"\n", []
    for _ in range(30):
        log.write(STDOUT, line * 100)
    real = os.pread
    monkeypatch.setattr(form.os, "pread", lambda file, size, place: sizes.append(size) or real(file, size, place))

    async def pieces(**wanted):
        return [len(piece) async for piece in read(log, LogOptions(**wanted), homes.call)]

    found = asyncio.run(pieces())
    assert sum(found) == 3000 * len(line)
    assert max(found) <= 128 << 10
    assert sum(asyncio.run(pieces(tail=100))) == 100 * len(line)
    assert max(sizes) <= 128 << 10
