"""Login pods of two hosts, over a real etcd and with real processes; only the hosts' kernels are not."""

import os
import subprocess
from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from isthmus.network.api.messages import ErrorCode
from isthmus.network.api.protocol import RequestError
from isthmus.network.bounds import LOGIN_FIRST
from isthmus.network.dns.names import NodeNames
from isthmus.network.dns.records import DnsSettings
from isthmus.network.drivers.private.network import PrivateNetwork
from isthmus.network.logins.numbers import Logins
from isthmus.network.logins.pods import LoginPods
from isthmus.network.node.converge import Converger
from isthmus.network.services.apply import PodServices
from isthmus.network.state.ipam import Request
from tests.support.fakes.kernel import FakeFollower, FakeKernel
from tests.support.networks.daemons import two_hosts
from tests.support.wait import wait

SETTINGS = Logins(20000, 20499, 250, (22,), 0, linger_s=0, tmp_mib=64, is_here=True)
# Accounts that every machine has.
DAEMON, BIN, SYS = 1, 2, 3


class Processes:
    """The first processes of pods, in this process's network."""

    def __init__(self, folder):
        self.folder = folder
        self.started, self.following = {}, set()
        self.is_failing = self.is_slow = False

    def start(self, uid):
        if self.is_failing:
            raise OSError("systemctl: no")
        if uid in self.started:
            return
        self.started[uid] = subprocess.Popen(["sleep", "300"])
        place = self.folder / str(uid)
        (place / "netns").unlink()
        (place / "netns").symlink_to("/proc/self/ns/net")
        (place / "init").write_text(f"{self.started[uid].pid}\n")

    def stop(self, uid):
        if self.is_slow:
            raise OSError("systemctl: stopped after 15 s")
        self.following.discard(uid)
        if process := self.started.pop(uid, None):
            process.kill()
            process.wait()

    def follow(self, uid):
        assert uid in self.started
        self.following.add(uid)

    def unfollow(self, uid):
        self.following.remove(uid)

    def followed(self):
        return frozenset(self.following)


class Bed:
    """A login host of its own, whose daemon may begin again."""

    def __init__(self, host, name, folder):
        self.host, self.name, self.folder = host, name, folder
        self.units = Processes(folder)
        self.pods = self.begin()

    def begin(self, settings=SETTINGS):
        names = NodeNames(DnsSettings("cl", folder=self.folder), lambda: None)
        converger = Converger(self.name, FakeKernel(), FakeFollower([], "filter"), FakeFollower([], "names"))
        network = PrivateNetwork(self.host.view, converger, names)
        services = PodServices(IPv4Network("10.96.0.0/16"))
        store, view = self.host.store, self.host.view
        self.pods = LoginPods(self.name, settings, store, view, network, services, self.units, self.folder, self.units)
        return self.pods

    def known(self):
        state = self.host.store.load().state
        return {job.uid: job.id for job in state.jobs.values() if job.nodes == (self.name,)}


@pytest.fixture
def beds(cluster, tmp_path):
    with two_hosts(cluster, tmp_path) as hosts:
        made = [Bed(host, name, tmp_path / name) for host, name in zip(hosts, ("c1", "c2"), strict=True)]
        yield made
        for bed in made:
            for uid in list(bed.units.started):
                bed.units.stop(uid)


@pytest.fixture
def bed(beds):
    return beds[0]


@pytest.fixture
def sessions():
    """Begin processes that stand for sshd's; what is left is ended."""
    begun = []

    def begin():
        begun.append(subprocess.Popen(["sleep", "300"]))
        return begun[-1]

    yield begin
    for each in begun:
        end(each)


def end(process):
    process.kill()
    process.wait()


def test_sessions_of_a_user_share_a_pod(bed, sessions):
    first = bed.pods.prepare(DAEMON)
    assert bed.pods.enter(DAEMON, sessions().pid) == first
    assert bed.pods.enter(DAEMON, sessions().pid) == first
    assert bed.pods.enter(BIN, sessions().pid)["init"] != first["init"]
    assert bed.known() == {DAEMON: LOGIN_FIRST, BIN: LOGIN_FIRST + 1}


def test_pod_ends_with_its_last_session(bed, sessions):
    first, second = sessions(), sessions()
    for session in (first, second):
        bed.pods.enter(DAEMON, session.pid)
    end(first)
    bed.pods.look()
    assert bed.pods.owners() == [DAEMON]
    end(second)
    bed.pods.look()
    assert bed.pods.owners() == []
    assert not bed.units.started
    assert not bed.known()
    assert not (bed.folder / str(DAEMON)).exists()


def test_pod_that_could_not_be_stopped_does_not_lock_its_user_out(bed, sessions):
    """On a host that is so busy that systemd takes too long."""
    session = sessions()
    bed.pods.enter(DAEMON, session.pid)
    left = bed.units.started[DAEMON]
    end(session)
    bed.units.is_slow = True
    bed.pods.look()
    assert left.poll() is None
    bed.units.is_slow = False
    assert bed.pods.enter(DAEMON, sessions().pid)["init"] != left.pid
    assert left.poll() is not None


def test_pod_stays_a_moment_for_the_next_session(bed, sessions):
    pods = bed.begin(replace(SETTINGS, linger_s=300))
    session = sessions()
    pods.enter(DAEMON, session.pid)
    end(session)
    pods.look()
    assert pods.owners() == [DAEMON]


def test_next_daemon_takes_over_pods_and_sessions(bed, sessions):
    session = sessions()
    before = bed.pods.enter(DAEMON, session.pid)
    pods = bed.begin()
    pods.look()
    assert pods.prepare(DAEMON)["init"] == before["init"]
    end(session)
    pods.look()
    assert pods.owners() == []


def test_pod_that_ended_while_no_daemon_looked_is_cleared_away(bed, sessions):
    bed.pods.enter(DAEMON, sessions().pid)
    end(bed.units.started[DAEMON])
    pods = bed.begin()
    pods.look()
    assert pods.owners() == []
    assert wait(bed.known, lambda known: not known) == {}
    assert not (bed.folder / str(DAEMON)).exists()


def test_pod_that_ended_by_itself_is_made_again(bed, sessions):
    first = bed.pods.enter(DAEMON, sessions().pid)
    end(bed.units.started[DAEMON])
    assert bed.pods.enter(DAEMON, sessions().pid)["init"] != first["init"]


def test_session_that_ended_before_it_was_counted_is_refused(bed, sessions):
    ended = sessions()
    end(ended)
    with pytest.raises(RequestError) as caught:
        bed.pods.enter(DAEMON, ended.pid)
    assert caught.value.code == ErrorCode.INVALID
    assert os.listdir(bed.folder / str(DAEMON) / "sessions") == []


def test_host_whose_ports_are_taken_says_so(bed):
    for uid in (DAEMON, BIN):
        bed.pods.prepare(uid)
    with pytest.raises(RequestError, match="all 2 login pods of c1 are taken; raise network_login_ports") as caught:
        bed.pods.prepare(SYS)
    assert caught.value.code == ErrorCode.FULL


def test_account_that_nobody_knows_gets_none(bed):
    with pytest.raises(RequestError, match="no user with uid 4000000000"):
        bed.pods.prepare(4_000_000_000)


def test_pod_that_cannot_be_started_leaves_nothing(bed):
    bed.units.is_failing = True
    with pytest.raises(RequestError, match="could not be started: systemctl: no"):
        bed.pods.prepare(DAEMON)
    bed.pods.look()
    assert wait(bed.known, lambda known: not known) == {}
    bed.units.is_failing = False
    assert bed.pods.prepare(DAEMON)


def test_user_has_a_pod_on_each_host(beds):
    for bed in beds:
        bed.pods.prepare(DAEMON)
    assert [bed.known() for bed in beds] == [{DAEMON: LOGIN_FIRST}, {DAEMON: LOGIN_FIRST + 1024}]


def test_node_that_is_forgotten_leaves_no_login_pods(beds):
    gone, other = beds
    for uid in (DAEMON, BIN):
        gone.pods.prepare(uid)
    other.pods.prepare(DAEMON)
    assert other.host.store.forget("c1")
    assert not gone.known()
    assert set(other.known()) == {DAEMON}


def test_pods_of_a_node_that_was_cut_off_for_long_end_when_it_learns_it(beds, sessions):
    cut, other = beds
    session = sessions()
    before = cut.pods.enter(DAEMON, session.pid)
    other.pods.prepare(DAEMON)
    cut.host.close()
    assert other.host.store.end_silent("c1") == 1
    cut.pods.look()
    assert cut.pods.enter(DAEMON, session.pid) == before, "nothing is taken from a node that knows nothing of it"
    cut.host.begin(cut.host.operations)
    assert wait(lambda: cut.pods.look() or cut.pods.owners(), lambda owners: not owners) == []
    assert not cut.units.started
    assert set(other.known()) == {DAEMON}
    # The next session has a pod again.
    assert cut.pods.enter(DAEMON, sessions().pid)
    assert set(cut.known()) == {DAEMON}


def test_services_are_followed_of_users_with_a_cluster_while_they_have_a_pod(bed, sessions):
    store = bed.host.store
    for uid in (DAEMON, BIN):
        bed.pods.enter(uid, sessions().pid)
    store.reserve(DAEMON, "daemon", "kubernetes")
    store.take(Request(7, DAEMON, "daemon", "isthmus-control-plane", ("c2",), "kubernetes"))
    wait(lambda: bed.pods.look() or bed.units.following, lambda following: following == {DAEMON})
    # What ended with all others, and what ended with an earlier daemon, is started again.
    bed.units.following.clear()
    bed.pods.look()
    assert bed.units.following == {DAEMON}
    bed.units.following.clear()
    bed.begin().look()
    assert bed.units.following == {DAEMON}
    end(bed.units.started[DAEMON])
    bed.pods.look()
    assert not bed.units.following
    bed.pods.enter(DAEMON, sessions().pid)
    bed.pods.look()
    assert bed.units.following == {DAEMON}
