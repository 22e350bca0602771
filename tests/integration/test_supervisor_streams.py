"""exec, attach, logs, forwarded ports and figures of a running pod, on real Apptainer."""

import json
import re
import time

import pytest

from isthmus.podproto import frames, windows
from isthmus.podproto.frames import Channel
from isthmus.supervisor.main import Timing
from tests.support.fakes.kubelet import wait_for_log
from tests.support.pods.plans import container, plan, probe
from tests.support.wait import stays, wait

SERVER = "mkdir -p /www; echo page >/www/index.html; httpd -f -p 127.0.0.1:18231 -h /www"


@pytest.fixture
def running(pod):
    """A pod with a container that counts, and one that can be typed to."""
    count = container("main", "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.2; done")
    typed = container("typed", "while read word; do echo got $word; done; echo over", stdin=True, stdin_once=True)
    kubelet = pod.run(plan(count, typed))
    for name in ("main", "typed"):
        kubelet.until(name, ready=True)
    return kubelet


def test_exec(running):
    assert running.exec("main", "sh", "-c", "echo out; echo err >&2; exit 7").finish() == (7, b"out\n", b"err\n")
    assert running.exec("main", "cat", "/proc/1/comm").finish()[1] == b"appinit\n"
    assert running.exec("main", "/no/such").refusal() == 'exec: exec: "/no/such": No such file or directory'
    assert running.exec("other", "true").refusal() == "exec: container other has not started"
    begun = time.monotonic()
    stream = running.exec("main", "echo", "fast")
    assert stream.finish()[1] == b"fast\n"
    assert stream.first_s - begun < 10


def test_exec_with_input(running):
    stream = running.exec("main", "sh", "-c", "cat; echo end", stdin=True)
    content = bytes(range(256)) * 5000
    for start in range(0, len(content), 65536):
        stream.send(Channel.STDIN, content[start : start + 65536])
    stream.send(Channel.STDIN, b"")
    assert stream.finish() == (0, content + b"end\n", b"")


def test_exec_with_a_terminal(running):
    stream = running.exec("main", "sh", tty=True, stdin=True)
    stream.send(Channel.RESIZE, json.dumps({"Width": 101, "Height": 33}).encode())
    stream.send(Channel.STDIN, b"stty size; exit 5\n")
    code, output, errors = stream.finish()
    assert code == 5
    assert b"33 101\r\n" in output
    assert errors == b""


def test_exec_that_is_cancelled_ends(running, pod):
    stream = running.exec("main", "sleep", "31415")
    wait(lambda: pod.processes(b"31415"), interval_s=0.05)
    stream.cancel()
    wait(lambda: pod.processes(b"31415"), lambda left: not left, interval_s=0.05)


def test_attach_with_input_that_ends_the_program(running):
    stream = running.open("attach", container="typed", tty=False, stdin=True)
    stream.send(Channel.STDIN, b"hello\n")
    stream.wait_for(b"got hello\n")
    stream.send(Channel.STDIN, b"")
    assert stream.finish() == (0, b"got hello\nover\n", b"")


def test_attach_to_a_terminal(pod):
    sized = "stty size | grep -q '20 90'"
    kubelet = pod.run(
        plan(
            container("main", f"until {sized}; do sleep 0.1; done; read word; stty size; exit 3", tty=True, stdin=True)
        )
    )
    kubelet.until("main", ready=True)
    stream = kubelet.open("attach", container="main", tty=True, stdin=True)
    stream.send(Channel.RESIZE, json.dumps({"Width": 90, "Height": 20}).encode())
    stream.send(Channel.STDIN, b"x\n")
    code, output, _ = stream.finish()
    assert code == 0
    assert b"20 90" in output
    assert kubelet.ended()["containers"]["main"]["exit_code"] == 3


def test_logs(running):
    wait_for_log(running, "main", b"line 6\n")
    whole = running.logs("main").finish()[1].splitlines()
    assert whole[:6] == [f"line {number}".encode() for number in range(1, 7)]
    assert len(running.logs("main", tail=2).finish()[1].splitlines()) == 2
    assert running.logs("main", limit_bytes=9).finish()[1] == b"line 1\nli"
    stamped = running.logs("main", timestamps=True).finish()[1].splitlines()
    assert re.fullmatch(rb"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{9}Z line 4", stamped[3])
    since = stamped[3].split()[0].decode()
    assert running.logs("main", since=since).finish()[1].splitlines()[0] == b"line 4"
    assert "has not had an earlier start" in running.logs("main", previous=True).refusal()


def test_logs_follow_to_the_end(pod):
    waits = "until test -e /on; do sleep 0.1; done"
    kubelet = pod.run(plan(container("main", f"echo a; {waits}; echo b >&2; sleep 0.3; printf c")))
    kubelet.until("main", state="running")
    stream = kubelet.logs("main", follow=True, tail=1)
    stream.wait_for(b"a\n")
    kubelet.exec("main", "touch", "/on").finish()
    assert stream.finish() == (None, b"a\nb\nc\n", b"")


def test_slow_reader_gets_the_whole_log_of_a_pod_that_ends(pod):
    waits = "until test -e /on; do sleep 0.1; done"
    # More than sockets hold, less than a log may have.
    kubelet = pod.run(plan(container("main", f"{waits}; yes {'x' * 1000} | head -n 8000; echo over")))
    kubelet.until("main", state="running")
    stream = kubelet.logs("main", follow=True)
    kubelet.exec("main", "touch", "/on").finish()
    with kubelet.held():
        wait(
            lambda: json.loads((pod.folder / "report.json").read_text()), lambda reported: reported["phase"] == "ended"
        )
        because = "a supervisor that waits for its last report alone ends after last_word_s"
        stays(pod.process.poll, lambda status: status is None, seconds=Timing().last_word_s + 1, because=because)
    lines = stream.finish()[1].splitlines()
    assert (len(lines), lines[-1]) == (8001, b"over")


def test_stream_waits_for_its_window_and_delays_nobody(running):
    stream = running.open(
        "exec",
        container="main",
        argv=["sh", "-c", f"yes {'x' * 99} | head -n 3000; echo over"],
        tty=False,
        stdin=False,
        window=2 * windows.FRAME_BYTES + 2 * frames.CHUNK_BYTES,
    )
    # How much fits depends on how the pipe was read: small chunks take more of a window than their bytes.
    wait(lambda: len(stream.got.get(Channel.STDOUT, b"")), interval_s=0.05)
    assert running.exec("main", "echo", "beside").finish()[1] == b"beside\n"
    sent = lambda: (stream.end, len(stream.got[Channel.STDOUT]))  # noqa: E731 -- one use
    right = lambda now: now[0] is None and now[1] <= 2 * frames.CHUNK_BYTES  # noqa: E731 -- the same
    # The program has ended long ago, and its output is not lost.
    stays(sent, right, seconds=6, because="an end that does not wait for its reader is sent at once")
    stream.grant(windows.WINDOW_BYTES)
    code, output, _ = stream.finish()
    assert (code, len(output), output[-5:]) == (0, 300_005, b"over\n")


def test_input_that_a_program_does_not_read_is_not_granted(running):
    stream = running.open("exec", container="main", argv=["sleep", "1000"], tty=False, stdin=True, window=1 << 20)
    wait(lambda: stream.granted, lambda count: count == windows.WINDOW_BYTES, interval_s=0.05)
    for _ in range(10):
        stream.send(Channel.STDIN, bytes(frames.CHUNK_BYTES))
    # What a pipe takes and one chunk is all that was taken: less than half of the window, so nothing more is granted.
    assert running.exec("main", "echo", "beside").finish()[1] == b"beside\n"
    assert stream.granted == windows.WINDOW_BYTES
    stream.cancel()


def test_forwarded_port(pod):
    kubelet = pod.run(plan(container("main", SERVER, readiness=probe("tcp", port=18231))))
    kubelet.until("main", ready=True)
    stream = kubelet.open("forward", port=18231)
    stream.send(Channel.STDIN, b"GET /index.html HTTP/1.0\r\n\r\n")
    stream.wait_for(b"page\n")
    assert stream.finish()[1].startswith(b"HTTP/1.")
    assert "Connect call failed" in kubelet.open("forward", port=1).refusal()


def test_figures(pod):
    kubelet = pod.run(plan(container("main", "while :; do :; done"), container("idle", "sleep 1000")))
    for name in ("main", "idle"):
        kubelet.until(name, ready=True)
    reported = wait(
        lambda: json.loads(kubelet.open("stats").finish()[1])["containers"],
        lambda reported: reported["main"]["cpu_ns"] > reported["idle"]["cpu_ns"] + 100_000_000,
    )
    assert 0 < reported["idle"]["memory_bytes"] < 50_000_000
