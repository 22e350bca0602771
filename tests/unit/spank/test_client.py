"""A daemon that is wrong in any way gives one clear line, in time."""

import json
import socket
import threading
import time

import pytest

from tests.unit.spank.conftest import LIMIT_S, ONE_BUILD, READY
from tests.unit.spank.fake_daemon import Held, ok

LINE = json.dumps(READY).encode()
NO_JSON = "the network daemon's answer is no JSON object"
NO_SENSE = "the network daemon's answer about the job makes no sense"
VERSION = "the network daemon speaks another version"
UNSAID = "the network daemon's answer does not say whether it is well"
SILENT = f"did not answer within {LIMIT_S} s"
ANSWERS = {
    "garbage": (b"\xff\xfe\x00garbage\n", NO_JSON),
    "empty line": (b"\n", NO_JSON),
    "half an object": (LINE[:-1] + b"\n", NO_JSON),
    "two objects": (LINE + LINE + b"\n", NO_JSON),
    "a list": (b"[1]\n", NO_JSON),
    "null": (b"null\n", NO_JSON),
    "too deep": (b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"\n", NO_JSON),
    "half a line": (LINE, "stopped in the middle of its answer"),
    "a huge line": (b"x" * 2**20, "answered more than 64 KiB"),
    "a line of one byte too many": (LINE + b" " * (2**16 - len(LINE)) + b"\n", "answered more than 64 KiB"),
    "no version": ({"ok": True, "state": "absent"}, VERSION),
    "version 2": (READY | {"version": 2}, VERSION),
    "version as text": (READY | {"version": "1"}, VERSION),
    "no ok": ({"version": 1, "state": "absent"}, UNSAID),
    "ok as text": (READY | {"ok": "true"}, UNSAID),
    "refused without error": ({"version": 1, "ok": False}, "refused without a reason"),
    "refused with a text": ({"version": 1, "ok": False, "error": "no"}, "refused without a reason"),
    "no state": (ok(), NO_SENSE),
    "unknown state": (ok(state="gone"), NO_SENSE),
    "state as number": (ok(state=1), NO_SENSE),
    "ready without namespace": (ok(state="ready", leg="il1"), NO_SENSE),
    "ready without leg": (ok(state="ready", netns="/proc/self/ns/net", leg=""), NO_SENSE),
    "leg too long": (READY | {"leg": "i" * 16}, NO_SENSE),
    "leg with a NUL": (READY | {"leg": "il1\0"}, NO_SENSE),
    "namespace too long": (READY | {"netns": "/" * 4096}, NO_SENSE),
    "failed without reason": (ok(state="failed"), "the network daemon gave no reason"),
    "failed with a list": (ok(state="failed", error=[]), "the network daemon gave no reason"),
}


def failure(plugin):
    begun_s = time.monotonic()
    result = plugin.run("step", HOST_OPTION="")
    assert "task=1" in result.reported
    user_reads = [line for line in result.errors if "so the task was not started" in line]
    assert len(user_reads) == 1
    # One second is the bound; the rest is for a busy machine.
    assert time.monotonic() - begun_s < 10
    return user_reads[0]


@pytest.mark.parametrize("what", ANSWERS)
def test_wrong_answer_is_one_clear_error(plugin, daemon, what):
    answer, reported = ANSWERS[what]
    daemon(job_get=answer)
    assert reported in failure(plugin)


def test_answer_of_the_greatest_length_is_read(plugin, daemon):
    daemon(job_get=LINE + b" " * (2**16 - len(LINE) - 1) + b"\n")
    assert "task=0" in plugin.run("step", HOST_OPTION="").reported


@ONE_BUILD
@pytest.mark.parametrize("part", [b"", LINE], ids=["nothing", "no newline"])
def test_daemon_that_stops_answering_is_given_up(plugin, daemon, part):
    daemon(job_get=Held(part))
    assert SILENT in failure(plugin)


@ONE_BUILD
def test_daemon_that_takes_no_calls_is_given_up(plugin, daemon):
    daemon(deaf=True)
    assert "cannot be reached (it takes no calls)" in failure(plugin)


def test_daemon_that_hangs_up_is_reported(plugin, daemon):
    daemon(job_get=b"")
    assert "closed the connection unanswered" in failure(plugin)


@ONE_BUILD
@pytest.mark.parametrize("is_left_over", [False, True], ids=["no socket", "nobody behind it"])
def test_daemon_that_is_being_restarted_is_waited_for(plugin, daemon, is_left_over):
    if is_left_over:
        with socket.socket(socket.AF_UNIX) as left_over:
            left_over.bind(str(plugin.socket))

    def restart():
        plugin.socket.unlink(missing_ok=True)
        daemon(job_get=READY)

    later = threading.Timer(0.5, restart)
    later.start()
    reported = plugin.run("step", limit_s=30, HOST_OPTION="")
    later.join()
    assert "task=0" in reported.reported


@ONE_BUILD
def test_missing_socket_is_reported(plugin):
    assert f"the network daemon at {plugin.socket} cannot be reached (No such file or directory)" in failure(plugin)


@ONE_BUILD
def test_left_over_socket_is_reported(plugin):
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(plugin.socket))
    assert "cannot be reached (Connection refused)" in failure(plugin)
