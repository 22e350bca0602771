"""Two nodes asked for jobs of Flannel's network: flanneld, plugins and etcd are real, rules and names are not."""

from contextlib import ExitStack
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from isthmus.clients.etcd.store import Etcd
from isthmus.clients.etcd.wire import prefix_range
from isthmus.model.network import Driver, Node, Ranges
from isthmus.network.api.messages import JobGet, JobPrepare, JobRelease, List, Status
from isthmus.network.api.operations import Dependencies, Operations
from isthmus.network.dns.names import NodeNames
from isthmus.network.dns.records import DnsSettings
from isthmus.network.drivers.flannel.converge import FlannelConverger
from isthmus.network.drivers.flannel.network import FlannelNetwork
from isthmus.network.drivers.private.network import PrivateNetwork
from isthmus.network.node.converge import Converger
from isthmus.network.node.plugin import Watcher
from isthmus.network.node.rules import Settings
from isthmus.network.services.apply import PodServices
from isthmus.network.state.keys import Keys
from isthmus.network.state.store import Store
from isthmus.network.state.view import View
from tests.support.fakes.kernel import FakeFollower, FakeKernel
from tests.support.networks.daemons import Daemon
from tests.support.networks.flannel import FlannelNodes
from tests.support.networks.namespaces import needs_root
from tests.support.servers.etcd import PREFIX, running
from tests.support.wait import wait

RANGE = IPv4Network("10.64.0.0/16")
pytestmark = needs_root
ALICE, BOB, PORT = 20001, 20002, 5000
NODES = ("n1", "n2")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with ExitStack() as stack:
        cluster = stack.enter_context(running(tmp_path_factory.mktemp("etcd")))
        made = FlannelNodes.of(stack, cluster, tmp_path_factory.mktemp("flannel"), "vxlan", *NODES)
        for name in NODES:
            made.start(name)
        yield made


class InPlace:
    """Calls an object's methods in a place."""

    def __init__(self, place, wrapped):
        self._place, self._wrapped = place, wrapped

    def __getattr__(self, name):  # noqa: D105 -- a test's
        return lambda *arguments: self._place.do(getattr(self._wrapped, name), *arguments)


class Host(Daemon):
    """A node's daemon without a socket; what it leaves is the next one's."""

    def __init__(self, world, name):
        self.name, self.world = name, world
        self.store = Store(Etcd(world.cluster.access()), Keys("test"), Ranges(RANGE))
        self.store.announce(Node(name, world.nodes.address(name)))
        self.view = View(self.store.load())
        self.attachments = InPlace(world.nodes.places[name], world.attachments(name))
        report = lambda each: self.store.attach(each, self.view.snapshot)  # noqa: E731
        self.flannel = FlannelConverger(name, self.attachments, report)
        follower = FakeFollower([], "follower")
        pods = lambda: self.flannel.last.pods  # noqa: E731
        converger = Converger(name, FakeKernel(), follower, follower, shared=pods)
        names = NodeNames(DnsSettings("cl", folder=world.folder), lambda: None)
        networks = {
            Driver.PRIVATE: PrivateNetwork(self.view, converger, names),
            Driver.FLANNEL: FlannelNetwork(name, self.view, self.flannel, converger, names),
        }
        rest = (Settings(RANGE), "cl", PodServices(IPv4Network("10.96.0.0/16")), Watcher(Path("/nonexistent")))
        self.begin(Operations(Dependencies(name, self.store, self.view, converger, networks, *rest)))

    def follow(self):
        return self.flannel.run(self.view.state)


@pytest.fixture
def hosts(world):
    etcd = Etcd(world.cluster.access())
    etcd.call("kv/deleterange", prefix_range(PREFIX))
    made = [Host(world, name) for name in NODES]
    wait(lambda: all(set(host.view.snapshot.state.nodes) == set(NODES) for host in made))
    yield made
    etcd.call("kv/deleterange", prefix_range(f"{PREFIX}jobs/"))
    for host in made:
        wait(lambda host=host: not host.view.snapshot.state.jobs)
        host.follow()
        host.close()


def prepare(job=7, uid=ALICE, nodes=NODES, driver=Driver.FLANNEL, **changes):
    return JobPrepare(job, uid, f"u{uid}", "run", nodes, driver, **changes)


def test_pods_of_a_job_reach_each_other_and_are_listed(world, hosts):
    reported = [host.ask(prepare()) for host in hosts]
    assert [each["netns"] for each in reported] == ["/run/netns/isthmus-flannel-7"] * 2
    assert [each["leg"] for each in reported] == ["iflannel"] * 2
    world.pod("n2", 7).serve("", PORT)
    assert world.pod("n1", 7).asks(reported[1]["address"], PORT) == reported[0]["address"]
    wait(lambda: hosts[0].ask(List(), ALICE)["jobs"][0]["addresses"], lambda found: all(found))
    (job,) = hosts[0].ask(List(), ALICE)["jobs"]
    assert (job["driver"], job["addresses"]) == ("flannel", [each["address"] for each in reported])


def test_preparing_again_changes_nothing(hosts):
    first = hosts[0].ask(prepare())
    revision = hosts[0].store.load().state.revision
    assert hosts[0].ask(prepare()) == first
    assert hosts[0].store.load().state.revision == revision


def test_state_is_reported_as_for_private_networks(hosts):
    assert hosts[0].ask(JobGet(7), ALICE)["state"] == "absent"
    hosts[0].ask(prepare())
    assert hosts[0].ask(JobGet(7), ALICE)["state"] == "ready"
    assert hosts[0].ask(JobGet(7), BOB)["error"]["code"] == "forbidden"
    assert [hosts[0].ask(Status(), uid)["pods"] for uid in (0, ALICE, BOB)] == [1, 1, 0]


def test_both_networks_live_side_by_side(hosts):
    shared, private = hosts[0].ask(prepare()), hosts[0].ask(prepare(8, driver=Driver.PRIVATE))
    assert (shared["leg"], private["leg"]) == ("iflannel", "il4096")
    assert hosts[0].ask(JobGet(7))["state"] == hosts[0].ask(JobGet(8))["state"] == "ready"


def test_released_job_leaves_the_node_and_stays_known(world, hosts):
    hosts[0].ask(prepare())
    hosts[0].ask(JobRelease(7))
    assert hosts[0].follow().pods == {}
    assert world.addresses_in_use("n1") == set()
    assert 7 in hosts[0].store.load().state.jobs


def test_job_that_ended_while_the_daemon_was_dead_is_taken_away(world, hosts):
    for job in (7, 8):
        hosts[0].ask(prepare(job))
    at = hosts[0].store.load()
    hosts[0].store.release({job: at.jobs()[job] for job in (7,)}, at)
    again = FlannelConverger("n1", hosts[0].attachments, lambda each: None)
    kept = again.last.pods[8]
    assert again.run(lambda: hosts[0].store.load().state).pods == {8: kept}
    assert world.addresses_in_use("n1") == {kept.address}


def test_failure_is_reported_with_the_plugins_words(world, hosts):
    path = world.folder / "n1/subnet.env"
    text = path.read_text()
    path.unlink()
    try:
        refused = hosts[0].ask(prepare())
        assert refused["error"]["code"] == "failed"
        assert "subnet.env" in refused["error"]["message"]
        assert hosts[0].ask(JobGet(7))["state"] == "failed"
    finally:
        path.write_text(text)
    assert hosts[0].ask(prepare())["ok"]


def test_network_that_the_cluster_lacks_is_named(hosts):
    del hosts[0].operations._deps.networks[Driver.FLANNEL]
    refused = hosts[0].ask(prepare())
    assert refused["error"] == {"code": "invalid", "message": "this cluster has no pod network flannel; use private"}
    assert not hosts[0].store.load().state.jobs


def test_reservation_is_refused(hosts):
    assert hosts[0].ask(prepare(reservation="web"))["error"]["code"] == "full"
