"""What is read of the kernel's files, and the one program that is made by hand."""

import os
import subprocess

import pytest

from isthmus.supervisor import cgroups, clock, linux, namespaces, pause, stats


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("alice:100000:65536\n", None),
        ("{me}:5:10\n", (5, 10)),
        ("alice:1:1\n{me}:7:8\n{me}:9:9\n", (7, 8)),
        ("{me}:broken\n", None),
        ("", None),
    ],
)
def test_subordinate_ids(tmp_path, text, told):
    path = tmp_path / "subuid"
    path.write_text(text.format(me=os.getuid()))
    assert namespaces._subordinate(str(path)) == told


def test_subordinate_ids_without_a_file(tmp_path):
    assert namespaces._subordinate(str(tmp_path / "none")) is None


@pytest.mark.parametrize("file", ["memory.events", "memory.oom_control"])
def test_kills_for_want_of_memory(tmp_path, file):
    (tmp_path / file).write_text("oom 3\noom_kill_disable 0\noom_kill 2\n")
    assert cgroups.oom_kills(tmp_path) == 2


def test_kills_where_nothing_can_be_seen(tmp_path):
    assert cgroups.oom_kills(tmp_path) == 0
    assert cgroups.oom_kills(None) == 0


def test_pause_tells_that_it_runs_and_waits(tmp_path):
    pause.write(str(tmp_path / "pause"))
    with subprocess.Popen([tmp_path / "pause"], stdout=subprocess.PIPE) as running:
        assert running.stdout.read(1) == pause.READY
        running.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.1)
        running.kill()
    assert len(pause.program("aarch64")) < 250
    with pytest.raises(OSError, match="pdp11"):
        pause.program("pdp11")


def test_capabilities_have_their_numbers():
    assert [linux.CAPABILITIES.index(name) for name in ("CHOWN", "NET_ADMIN", "SYS_ADMIN", "SETFCAP")] == [
        0,
        12,
        21,
        31,
    ]
    assert linux.CAPABILITIES.index("CHECKPOINT_RESTORE") == 40


def test_usage_of_a_process():
    cpu_ns, memory = stats.usage(os.getpid())
    assert cpu_ns > 0
    assert memory > 1 << 20
    assert stats.usage(2**22 + 1) == (0, 0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000_000),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1970-01-01T01:00:00.5+01:00", 500_000_000),
        ("2026-11-21T10:00:00.123456+00:00", 1_795_255_200_123_456_000),
    ],
)
def test_moments_are_read(text, told):
    assert clock.nanoseconds(text) == told


def test_moments_are_written_as_they_are_read():
    assert clock.nanoseconds(clock.precise(1_795_255_200_000_000_007)) == 1_795_255_200_000_000_007
