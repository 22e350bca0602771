"""Who follows Services in login pods: real forks, in real networks, against a server with TLS."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.kubelet.objects.servicetable import SERVICES
from isthmus.network.logins.orders import MESSAGE_BYTES
from tests.support.networks.followers import ALICE, BOB, followers_bed
from tests.support.networks.namespaces import TCP, Namespace, needs_root
from tests.support.pods.services import service
from tests.support.servers.watched import objects, watched
from tests.support.wait import WaitError, wait

pytestmark = needs_root


@pytest.fixture(scope="module")
def pod():
    with closing(Namespace()) as place:
        yield place


@pytest.fixture(scope="module")
def server(pod, tmp_path_factory):
    """In the pod's network, and nowhere else."""
    listening = pod.open(TCP, "127.0.0.1")
    listening.listen()
    with watched(tmp_path_factory.mktemp("server") / "pki", objects(), listening) as made:
        yield made
        assert made.wrong == []


@pytest.fixture
def bed(pod, server):
    with followers_bed() as made:
        for uid in (ALICE, BOB):
            made.network(uid, f"/proc/{os.getpid()}/task/{pod.thread}/ns/net")
            server.kubeconfig(made.home(uid), uid)
        yield made


def links(pid):
    return {os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir()}


def test_fork_is_the_user_in_the_pods_network_and_nothing_else(bed, pod):
    bed.daemon.follow(ALICE)
    said = bed.saying(ALICE)
    assert (said["uids"], said["gids"]) == ([ALICE] * 3, [ALICE] * 3)
    assert said["status"].pop("Groups") == [str(ALICE)]
    assert said["status"].pop("NoNewPrivs") == ["1"]
    assert said["status"].pop("Umask") == ["0022"]
    assert said["status"] == {f"Cap{each}": ["0" * 16] for each in ("Inh", "Prm", "Eff", "Bnd", "Amb")}
    assert said["network"] == pod.do(lambda: os.stat("/proc/thread-self/ns/net").st_ino)
    assert said["folder"] == "/"
    assert "SECRET" not in said["environment"]
    assert said["parent"] == bed.process.pid
    assert said["services"] == ["10.96.0.9"]


def test_fork_has_nothing_open_of_its_parents(bed):
    for uid in (ALICE, BOB):
        bed.daemon.follow(uid)
        bed.saying(uid)
    (first, second), parent = (links(pid) for pid in bed.forks()), links(bed.process.pid)
    assert len(parent) > 5, "its own are seen"
    assert first & parent == second & parent == first & second <= {"/dev/null"}
    for fork in (first, second):
        assert len(fork) == 3, "and two connections"
        assert all(each.startswith("socket:") for each in fork - {"/dev/null"})


def test_user_can_end_a_fork_but_not_look_into_it(bed, pod):
    bed.daemon.follow(ALICE)
    pid = bed.saying(ALICE)["pid"]
    with subprocess.Popen(["sleep", "60"], user=ALICE, group=ALICE, extra_groups=[]) as other:
        for file in ("environ", "mem", "maps", "fd/0"):
            read = ["head", "-c0", f"/proc/{pid}/{file}"]
            assert pod.run(*read, user=ALICE, check=False).returncode != 0
            assert pod.run(*read[:-1], f"/proc/{other.pid}/{file}", user=ALICE, check=False).returncode == 0
        other.kill()
    pod.run("kill", "-KILL", str(pid), user=ALICE)
    assert bed.saying(ALICE, 2)["pid"] != pid
    assert len(bed.forks()) == 1


def test_fork_that_is_unfollowed_has_ended(bed):
    for uid in (ALICE, BOB):
        bed.daemon.follow(uid)
    others = bed.saying(BOB)["pid"]
    pid = bed.saying(ALICE)["pid"]
    os.kill(pid, signal.SIGSTOP)
    bed.daemon.unfollow(ALICE)
    assert bed.forks() == [others]
    bed.daemon.follow(ALICE)
    assert bed.saying(ALICE, 2)["pid"] != pid


def test_fork_is_replaced_by_the_next_one(bed):
    bed.daemon.follow(ALICE)
    pid = bed.saying(ALICE)["pid"]
    bed.daemon.follow(ALICE)
    other = bed.saying(ALICE, 2)["pid"]
    assert bed.forks() == [other] != [pid]


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_forks_end_with_their_program_and_the_daemon_sees_it(bed, end):
    for uid in (ALICE, BOB):
        bed.daemon.follow(uid)
        bed.saying(uid)
    assert bed.daemon.followed() == {ALICE, BOB}
    getattr(bed.process, end)()
    bed.process.wait()
    wait(lambda: bed.forks() == [])
    assert bed.daemon.followed() == frozenset()
    bed.daemon.follow(ALICE)
    pid = bed.saying(ALICE, 2)["pid"]
    assert bed.forks() == [pid]


def test_all_ends_with_the_daemon(bed):
    for uid in (ALICE, BOB):
        bed.daemon.follow(uid)
    # And one that has hardly begun.
    bed.daemon.follow(ALICE)
    bed.daemon.close()
    assert bed.process.wait(timeout=10) == 0
    assert bed.forks() == []


def test_wrong_requests_are_refused_and_change_nothing(bed, pod):
    bed.daemon.follow(ALICE)
    pid = bed.saying(ALICE)["pid"]
    connection = bed.daemon._connection
    order = b'{"op": "follow", "uid": 2}'
    with (
        open("/dev/null") as nothing,
        open("/proc/self/ns/net") as of_host,
        open("/proc/self/ns/pid") as of_processes,
        open(f"/proc/{os.getpid()}/task/{pod.thread}/ns/net") as network,
    ):
        before = links(bed.process.pid)
        for message, files, why in [
            (b"x", [], "not JSON"),
            (b'{"op": "unfollow", "uid": 0}', [], "uid is not within"),
            (b'{"op": "unfollow", "uid": 1, "more": 1}', [], "unknown field"),
            (order, [], "with 0 descriptors"),
            (order, [network, network], "with 2 descriptors"),
            (order, [network] * 9, "too long"),
            (order + b" " * MESSAGE_BYTES, [network], "too long"),
            (order, [nothing], "no namespace"),
            (order, [of_processes], "no network"),
            (order, [of_host], "the host's network"),
        ]:
            socket.send_fds(connection, [message], [file.fileno() for file in files])
            assert why in connection.recv(MESSAGE_BYTES).decode()
        assert links(bed.process.pid) == before
    assert bed.forks() == [pid]
    assert len(bed.said(ALICE)) == 1


def test_kubeconfig_is_read_with_the_users_rights_alone(bed, server, tmp_path):
    server.kubeconfig(tmp_path / "of-root" / "kubeconfig", 0)
    file = bed.home(ALICE)
    file.unlink()
    file.symlink_to(tmp_path / "of-root" / "kubeconfig")
    assert file.read_text(), "root reads it"
    watches = server.watches
    for uid in (ALICE, BOB):
        bed.daemon.follow(uid)
    bed.saying(BOB)
    # The fork looks again and again meanwhile.
    with pytest.raises(WaitError):
        wait(lambda: bed.said(ALICE), timeout_s=3)
    assert server.watches == watches + 2
    file.unlink()
    server.kubeconfig(file, ALICE)
    assert bed.saying(ALICE)["uids"] == [ALICE] * 3


def test_account_that_is_none_keeps_nobody_waiting(bed, pod):
    stranger = 3_999_999
    bed.network(stranger, f"/proc/{os.getpid()}/task/{pod.thread}/ns/net")
    bed.daemon.follow(stranger)
    bed.daemon.follow(ALICE)
    bed.saying(ALICE)
    assert bed.daemon.followed() == {stranger, ALICE}
    bed.daemon.unfollow(stranger)
    assert len(bed.forks()) == 1


def test_changes_arrive_by_watches_that_end_and_go_on(bed, server):
    bed.daemon.follow(ALICE)
    bed.saying(ALICE)
    watches = server.watches
    server.break_off()
    # It had said nothing yet, so a pause is made.
    wait(lambda: server.watches >= watches + 2, timeout_s=15)
    server.change(SERVICES, "ADDED", service("more", "10.96.0.77"))
    assert bed.saying(ALICE, 2)["services"] == ["10.96.0.77", "10.96.0.9"]
    gone_ = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
    server.break_off(gone_)
    assert bed.saying(ALICE, 3)["services"] == ["10.96.0.9"], "listed again"


def test_program_wants_systemds_socket():
    run = subprocess.run([sys.executable, "-m", "isthmus.cli.login_followers"], capture_output=True, check=False)
    assert run.returncode == 2
    assert b"isthmus-login-followers.socket" in run.stderr
