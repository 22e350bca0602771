"""A task in a network namespace of its own, below several layouts of /sys, in mount namespaces of the test's own."""

import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.spank.conftest import READY

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and mounts need root")

# $v2 is where the machine has its cgroup2, $tmp a folder of the test's.
NEW_SYS = "mount --bind $v2 $tmp; umount -l /sys; mount -t sysfs sysfs /sys; mount --move $tmp /sys/fs/cgroup"
LAYOUTS = {
    "the machine's": "true",
    "cgroup v2": NEW_SYS,
    "cgroup v2, read-only": f"{NEW_SYS}; mount -o remount,bind,ro,nosuid,nodev,noexec /sys",
    "hybrid": (
        "mount --bind $v2 $tmp; mount -t tmpfs one /sys/fs/cgroup; mkdir /sys/fs/cgroup/a /sys/fs/cgroup/unified; "
        "mount -t tmpfs two /sys/fs/cgroup/a; mount --move $tmp /sys/fs/cgroup/unified; "
        "mount -o remount,bind,ro /sys/fs/cgroup"
    ),
    "masked proc": (
        "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; mount --bind /dev/null /proc/keys; "
        "mount -t tmpfs -o ro mask /proc/tty"
    ),
    "masked": "mount -t tmpfs -o ro mask /sys/block; mount --bind /dev/null /sys/kernel/uevent_seqnum",
}
SHOW = "echo =mounts; cat /proc/self/mountinfo; echo =net; ls /sys/class/net; readlink /proc/self/ns/net; echo =end"


def part(reported, name):
    """Return the lines between two marks, each time there are some."""
    start = [index for index, line in enumerate(reported) if line == f"={name}"]
    return [
        reported[index + 1 : next(i for i, line in enumerate(reported) if i > index and line[:1] == "=")]
        for index in start
    ]


def below(lines, folder="/sys"):
    """What is seen at each place: of several mounts there, the last."""
    fields = [line.split() for line in lines]
    return {each[4]: (each[2:4], each[5]) for each in fields if f"{each[4]}/".startswith(f"{folder}/")}


@pytest.fixture
def pod(tmp_path):
    """A network namespace with a name, as the daemon makes one."""
    path = tmp_path / "netns"
    path.touch()
    subprocess.run(["unshare", f"--net={path}", "true"], check=True)
    yield path
    subprocess.run(["umount", path], check=True)


@pytest.fixture
def node(plugin, tmp_path):
    """Return the plugin on a node with one of the layouts: what the node sees comes before, after and within a task."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    v2 = next((fields[4] for fields in mounts if "cgroup2" in fields), "")

    def make(layout):
        if "$v2" in LAYOUTS[layout] and not v2:
            pytest.skip("no cgroup2 is mounted here")
        (tmp_path / "mnt").mkdir()
        inside = f"v2={v2} tmp={tmp_path}/mnt; set -e; {LAYOUTS[layout]}; mount --make-rshared /; {SHOW}; $0 $@; {SHOW}"
        wrapper = tmp_path / "node"
        own = f"exec unshare --mount --propagation private sh -c {shlex.quote(inside)} {plugin.host} $@"
        wrapper.write_text(f"#!/bin/sh\n{own}\n")
        wrapper.chmod(0o755)
        return replace(plugin, host=wrapper)

    return make


def run_task(node, command=SHOW, **environment):
    return node.run("step", HOST_FAKE="", HOST_OPTION="", HOST_COMMAND=command, **environment)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_task_sees_its_network_and_all_else_as_before(node, daemon, pod, layout):
    daemon(job_get=READY | {"netns": str(pod)})
    result = run_task(node(layout))
    assert result.logged == ""
    before, within, after = (below(lines) for lines in part(result.reported, "mounts"))
    # A new /sys is another file system; its flags are the old one's.
    assert within.pop("/sys")[1] == before["/sys"][1]
    assert within == {path: seen for path, seen in before.items() if path != "/sys"}
    assert after == before


def test_task_is_in_the_pod_and_the_node_is_not(node, daemon, pod):
    daemon(job_get=READY | {"netns": str(pod)})
    before, within, after = part(run_task(node("the machine's")).reported, "net")
    assert within == ["lo", f"net:[{pod.stat().st_ino}]"]
    assert before == after != within


def test_mount_of_the_node_reaches_the_task(node, daemon, pod, tmp_path):
    daemon(job_get=READY | {"netns": str(pod)})
    late = tmp_path / "late"
    late.mkdir()
    mount = f"nsenter --mount=/proc/$PPID/ns/mnt mount -t tmpfs late {late}; grep -c ' {late} ' /proc/self/mountinfo"
    assert "1" in run_task(node("the machine's"), mount).reported


def test_resolv_conf_is_the_pods(node, daemon, pod, tmp_path):
    (tmp_path / "resolv.conf").write_text("search 7.alice.isthmus\n")
    daemon(job_get=READY | {"netns": str(pod), "resolv_conf": str(tmp_path / "resolv.conf")})
    assert "search 7.alice.isthmus" in run_task(node("the machine's"), "cat /etc/resolv.conf").reported


def test_removed_namespace_is_refused(node, daemon, tmp_path):
    left_over = tmp_path / "left_over"
    left_over.touch()
    daemon(job_get=READY | {"netns": str(left_over)})
    result = run_task(node("the machine's"))
    assert "task=1" in result.reported
    assert f"{left_over} is no network namespace" in result.errors[-1]
