import socket
from pathlib import Path

import pytest

from tests.unit.spank.conftest import READY

ENTRIES = ["unshare", "slave", "setns", "sysfs", "bind"]
REPORTED = {
    "unshare": "no mount namespace can be made: Operation not permitted",
    "slave": "no mount namespace can be made: Operation not permitted",
    "setns": "its network namespace cannot be entered: Operation not permitted",
    "sysfs": "/sys cannot be mounted: Operation not permitted",
    "bind": ": Operation not permitted",
}


def below_sys():
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if point.startswith("/sys/")]


def user_reads(result):
    return [line for line in result.errors if "so the task was not started" in line]


def test_task_enters_in_order(plugin, daemon):
    daemon(job_get=READY)
    reported = plugin.run("step", HOST_OPTION="").reported
    start = reported.index("unshare mounts")
    assert reported[start : start + 4] == ["unshare mounts", "mount slave /", "setns net", "mount sysfs /sys"]


def test_task_keeps_what_is_mounted_below_sys(plugin, daemon):
    daemon(job_get=READY)
    bound = [
        line.split()[-1] for line in plugin.run("step", HOST_OPTION="").reported if line.startswith("mount bind /sys/")
    ]
    assert all(any(point == top or point.startswith(f"{top}/") for top in bound) for point in below_sys())
    assert len(set(bound)) == len(bound)


@pytest.mark.parametrize("entry", ENTRIES)
def test_task_that_cannot_enter_is_not_run(plugin, daemon, tmp_path, entry):
    if entry == "bind" and not below_sys():
        pytest.skip("nothing is mounted below /sys here")
    daemon(job_get=READY)
    result = plugin.run("step", HOST_OPTION="", HOST_FAIL=entry, HOST_COMMAND=f"touch {tmp_path}/ran")
    assert "task=1" in result.reported
    assert not (tmp_path / "ran").exists()
    (error,) = user_reads(result)
    assert error.startswith(f"isthmus: job 7 cannot use its pod network on {socket.gethostname()}, so the task was ")
    assert REPORTED[entry] in error


def test_task_that_enters_is_run(plugin, daemon, tmp_path):
    daemon(job_get=READY)
    plugin.run("step", HOST_OPTION="", HOST_COMMAND=f"touch {tmp_path}/ran")
    assert (tmp_path / "ran").exists()


def test_failure_of_all_tasks_is_reported_once_a_node(plugin):
    result = plugin.run("step", HOST_OPTION="", HOST_TASKS="3")
    assert result.reported.count("task=1") == 3
    assert len(user_reads(result)) == 1


def test_failure_of_each_task_is_reported_by_each(plugin, daemon):
    daemon(job_get=READY)
    assert len(user_reads(plugin.run("step", HOST_OPTION="", HOST_TASKS="3", HOST_FAIL="setns"))) == 3


@pytest.mark.parametrize(
    ("path", "reported"),
    [
        ("/proc/self/ns/uts", "/proc/self/ns/uts is no network namespace"),
        ("/etc/passwd", "/etc/passwd is no network namespace"),
        ("/", "/ is no network namespace"),
        ("/none", "/none cannot be opened: No such file or directory"),
    ],
)
def test_what_is_no_network_namespace_is_not_entered(plugin, daemon, path, reported):
    daemon(job_get=READY | {"netns": path})
    result = plugin.run("step", HOST_OPTION="")
    assert {"pmix=", "task=1"} <= set(result.reported)
    assert reported in user_reads(result)[0]


def test_no_descriptor_is_left_to_the_program(plugin, daemon):
    daemon(job_get=READY)
    shown = plugin.run("step", HOST_OPTION="", HOST_COMMAND="ls -l /proc/self/fd").reported
    open_files = [line.rpartition(" -> ")[2] for line in shown if " -> " in line]
    assert open_files
    assert not [path for path in open_files if path.startswith(("net:", "socket:", "/sys"))]


def test_resolv_conf_is_covered_where_the_daemon_names_one(plugin, daemon):
    daemon(job_get=[READY | {"resolv_conf": "/run/isthmus/dns/7.conf"}])
    assert "mount bind /etc/resolv.conf" in plugin.run("step", HOST_OPTION="").reported
