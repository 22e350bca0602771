"""What is read of the kernel's files, and programs that lie on the node."""

import os
from pathlib import Path

import pytest

from isthmus.podproto.logs import nanoseconds
from isthmus.supervisor import clock
from isthmus.supervisor.containers import stats
from isthmus.supervisor.runtime import cgroups, inside, linux, namespaces


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("alice:100000:65536\n", None),
        ("{me}:5:10\n", (5, 10)),
        ("alice:1:1\n{me}:7:8\n{me}:9:9\n", (7, 8)),
        ("{me}:broken\n", None),
        ("", None),
    ],
)
def test_subordinate_ids(tmp_path, text, reported):
    path = tmp_path / "subuid"
    path.write_text(text.format(me=os.getuid()))
    assert namespaces._subordinate(str(path)) == reported


def test_subordinate_ids_without_a_file(tmp_path):
    assert namespaces._subordinate(str(tmp_path / "none")) is None


@pytest.mark.parametrize("file", ["memory.events", "memory.oom_control"])
def test_kills_for_want_of_memory(tmp_path, file):
    (tmp_path / file).write_text("oom 3\noom_kill_disable 0\noom_kill 2\n")
    assert cgroups.oom_kills(tmp_path) == 2


def test_kills_are_counted_from_the_first_look(tmp_path):
    file = tmp_path / "memory.events"
    file.write_text("oom_kill 2\n")
    kills = cgroups.OomKills(tmp_path)
    assert (kills.more(), kills.total) == (0, 0)
    file.write_text("oom_kill 5\n")
    assert (kills.more(), kills.more(), kills.total) == (3, 0, 3)
    file.unlink()
    assert (kills.more(), kills.total) == (0, 3)


def test_kills_where_nothing_can_be_seen(tmp_path):
    assert cgroups.oom_kills(tmp_path) == 0
    assert cgroups.oom_kills(None) == 0


def test_node_without_the_programs_of_containers_says_who_brings_them(monkeypatch, tmp_path):
    monkeypatch.setattr(inside, "FOLDER", tmp_path)
    with pytest.raises(OSError, match="an admin runs playbooks/network"):
        inside.find(inside.HOLD)
    (tmp_path / inside.HOLD).write_bytes(b"program")
    (tmp_path / inside.HOLD).chmod(0o755)
    inside.copy(inside.HOLD, tmp_path / "own")
    assert ((tmp_path / "own").read_bytes(), (tmp_path / "own").stat().st_mode & 0o777) == (b"program", 0o755)


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
    ("text", "reported"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000_000),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1970-01-01T01:00:00.5+01:00", 500_000_000),
        ("2026-11-21T10:00:00.123456+00:00", 1_795_255_200_123_456_000),
    ],
)
def test_moments_are_read(text, reported):
    assert nanoseconds(text) == reported


def test_moments_are_written_as_they_are_read():
    assert nanoseconds(clock.precise(1_795_255_200_000_000_007)) == 1_795_255_200_000_000_007


V1 = "12:cpu:/x\n4:memory:{path}\n0::/other\n"
POD = "/podman/c1"
ALL_OF_1 = "31 30 0:4 / /cg/memory rw - cgroup cgroup rw,memory"
PART_OF_1 = f"31 30 0:4 {POD} /cg/memory rw - cgroup cgroup rw,memory"
ALL_OF_2 = "31 30 0:4 / /cg/unified rw shared:1 - cgroup2 cgroup2 rw"
TMPFS = "30 29 0:3 / /sys/fs/cgroup ro shared:4 - tmpfs tmpfs ro,mode=755"


@pytest.mark.parametrize(
    ("cgroup", "mounts", "folder"),
    [
        (
            V1.format(path="/slurm/job_1"),
            [ALL_OF_1],
            "/cg/memory/slurm/job_1",
        ),
        (
            V1.format(path=f"{POD}/job_1"),
            [PART_OF_1],
            "/cg/memory/job_1",
        ),
        (V1.format(path="/elsewhere"), [PART_OF_1], None),
        (V1.format(path="/podman/c12/x"), [PART_OF_1], None),
        (
            "0::/slurm/job_1",
            ["31 30 0:4 / /sys/fs/cgroup rw shared:1 - cgroup2 cgroup2 rw"],
            "/sys/fs/cgroup/slurm/job_1",
        ),
        (f"0::{POD}", [f"31 30 0:4 {POD} /sys/fs/cgroup rw - cgroup2 none rw"], "/sys/fs/cgroup"),
        ("0::/slurm/job_1", ["31 30 0:4 / /cg/cpu rw - cgroup cgroup rw,cpu"], None),
        (V1.format(path="/a"), [ALL_OF_2, ALL_OF_1], "/cg/memory/a"),
        ("", [ALL_OF_2], None),
    ],
)
def test_memory_figures_are_where_they_are_mounted(tmp_path, cgroup, mounts, folder):
    for name, text in {"7/cgroup": cgroup, "self/mountinfo": "\n".join([TMPFS, *mounts])}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    assert cgroups.memory_folder(7, tmp_path) == (folder and Path(folder))


def test_memory_figures_of_a_process_that_is_gone_are_nowhere(tmp_path):
    assert cgroups.memory_folder(7, tmp_path) is None
