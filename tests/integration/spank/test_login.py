"""A login pod on the real kernel: its first process, and a session that PAM moves into it."""

import os
import subprocess
import sys

import pytest

from tests.support.wait import wait
from tests.unit.spank.conftest import HERE
from tests.unit.spank.fake_daemon import FakeDaemon, ok
from tests.unit.spank.test_login import USER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and mounts need root")
UID = 2001
LOOK = (
    "readlink /proc/self/ns/net /proc/self/ns/mnt /proc/self/ns/pid /proc/self/ns/ipc; cat /proc/1/comm;"
    " cd /proc/sys/net/ipv4; cat ip_local_port_range tcp_max_tw_buckets;"
    " ls /sys/class/net; stat -fc %T /tmp /var/tmp /dev/shm;"
    " grep ^nameserver /etc/resolv.conf"
)


@pytest.fixture
def folder(tmp_path):
    """What the daemon leaves for a pod."""
    made = tmp_path / "login"
    made.mkdir()
    (made / "netns").touch()
    subprocess.run(["unshare", f"--net={made / 'netns'}", "true"], check=True)
    (tmp_path / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    (made / "resolv.conf").symlink_to(tmp_path / "resolv.conf")
    (made / "ports").write_text("20256 20511\n")
    yield made
    subprocess.run(["umount", made / "netns"], check=True)


@pytest.fixture(params=["plain", "sanitized"])
def built_folder(request, built, monkeypatch):
    # Who looks for leaks begins a thread, which nobody can who has left the PID namespace of its children.
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    return built[request.param].parent


@pytest.fixture
def pod(folder, built_folder):
    """The first process of a pod; ended at the end."""
    subprocess.run([built_folder / "isthmus_login", folder, str(UID), "16"], check=True, timeout=30)
    first = int((folder / "init").read_text())
    yield first
    subprocess.run(["kill", "-KILL", str(first)], check=False)


def inside(first, *command):
    done = subprocess.run(["nsenter", "-t", str(first), "-a", *command], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_pod_has_a_view_of_its_own(pod, folder):
    seen = inside(pod, "sh", "-c", LOOK)
    outside = [os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "mnt", "pid", "ipc")]
    assert not set(seen[:4]) & set(outside)
    assert seen[4:] == ["isthmus_login", "20256", "20511", "32", "lo", *["tmpfs"] * 3, "nameserver", "192.0.2.53"]
    (folder / "outside").write_text("")
    assert inside(pod, "sh", "-c", "ls -A /tmp; cat /proc/[0-9]*/comm | sort -u | head -9")[0] != "outside"


@pytest.fixture
def names():
    """A way to give networks of the host names, as ip-netns(8) and the daemon do."""
    made = []

    def name():
        made.append(f"isthmus-test-{os.getpid()}-{len(made)}")
        subprocess.run(["ip", "netns", "add", made[-1]], check=True)

    yield name
    for each in made:
        subprocess.run(["ip", "netns", "delete", each], check=True)


def test_pod_holds_no_network_of_the_host(names, folder, built_folder):
    """Neither those that were there, nor later ones: each pod would keep a mount of each other one's."""
    names()
    subprocess.run([built_folder / "isthmus_login", folder, str(UID), "16"], check=True, timeout=30)
    first = int((folder / "init").read_text())
    try:
        names()
        assert not [line for line in inside(first, "cat", "/proc/self/mountinfo") if line.startswith("/run/netns")]
    finally:
        subprocess.run(["kill", "-KILL", str(first)], check=False)


def test_orphans_are_reaped_and_the_end_ends_all(pod):
    inside(pod, "sh", "-c", "for each in 1 2 3; do (sleep 0.1 &) ; done; (setsid sleep 60613 >/dev/null 2>&1 &)")
    processes = "ps -o state= -o comm= --ppid 1"
    wait(lambda: inside(pod, "sh", "-c", processes), lambda seen: seen == ["S", "sleep"])
    subprocess.run(["kill", "-TERM", str(pod)], check=True)
    wait(lambda: not os.path.exists(f"/proc/{pod}"))
    assert subprocess.run(["pgrep", "-f", "^sleep 60613$"], check=False).returncode != 0


@pytest.mark.parametrize("lacking", ["netns", "resolv.conf", "ports"])
def test_pod_that_cannot_be_made_says_why(folder, built_folder, lacking):
    if lacking == "netns":
        subprocess.run(["umount", folder / "netns"], check=True)
        os.replace(folder / "netns", folder / "kept")
    else:
        (folder / lacking).unlink()
    done = subprocess.run([built_folder / "isthmus_login", folder, str(UID), "16"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip()
    assert not (folder / "init").exists()
    if lacking == "netns":
        os.replace(folder / "kept", folder / "netns")
        subprocess.run(["unshare", f"--net={folder / 'netns'}", "true"], check=True)


def test_session_of_pam_goes_on_in_the_pod(pod, folder, built, tmp_path):
    module = built["plain"].parent / "pam_isthmus.so"
    line = f"required {module} socket={tmp_path}/daemon.sock login\n"
    (tmp_path / "isthmus").write_text(f"account {line}session {line}")
    place = ok(init=pod, netns=str(folder / "netns"))
    daemon = FakeDaemon(tmp_path / "daemon.sock", {"login_prepare": [place], "login_enter": [place]})
    try:
        command = [sys.executable, HERE / "login.py", tmp_path, USER, "/bin/sh", "-c", LOOK]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    finally:
        daemon.close()
        daemon.check()
    reported = done.stdout.splitlines()
    assert reported[:2] == ["pam_acct_mgmt: 0", "pam_open_session: 0"], done.stdout + done.stderr
    assert " ".join(reported[2:]).split() == inside(pod, "sh", "-c", LOOK)
