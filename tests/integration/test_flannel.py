"""Flannel's network on the real kernel: flanneld, CNI plugins and etcd, on two machines in namespaces."""

from contextlib import ExitStack
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.clients.cni.plugins import CniError
from isthmus.clients.netlink import namespaces
from tests.support.networks.flannel import RANGE, FlannelNodes
from tests.support.networks.namespaces import TCP, UDP, needs_root

pytestmark = needs_root
PORT = 5000
ALICE = 20001


@pytest.fixture(scope="module", params=["vxlan", "host-gw"])
def world(cluster, tmp_path_factory, request):
    with ExitStack() as stack:
        made = FlannelNodes.of(stack, cluster, tmp_path_factory.mktemp("flannel"), request.param, "n1", "n2")
        for name in ("n1", "n2"):
            made.start(name)
        yield made


class Host:
    """Pods of one machine."""

    def __init__(self, world, name):
        self.world, self.name, self.place = world, name, world.nodes.places[name]
        self.attachments = world.attachments(name)

    def do(self, verb, *arguments):
        return self.place.do(getattr(self.attachments, verb), *arguments)

    def close(self):
        found = self.do("observe")
        for job in found.pods.keys() | found.broken:
            self.do("remove", job)


@pytest.fixture
def hosts(world):
    made = [Host(world, name) for name in ("n1", "n2")]
    yield made
    for host in made:
        host.close()


def test_pod_has_an_address_of_its_nodes_subnet(world, hosts):
    pod = hosts[0].do("add", 7, ALICE)
    subnet = IPv4Network(world.subnet("n1")["SUBNET"], strict=False)
    assert pod.address in subnet
    assert subnet.subnet_of(IPv4Network(RANGE))
    assert str(pod.gateway) == world.subnet("n1")["SUBNET"].split("/")[0]
    inside = world.pod("n1", 7)
    assert str(pod.address) in inside.ip("-4 -o addr show eth0")
    assert f"mtu {world.subnet('n1')['MTU']} " in inside.ip("link show eth0")
    assert "UP" in inside.ip("link show lo")
    assert inside.ip("-6 addr") == ""


@pytest.mark.parametrize("kind", [TCP, UDP])
def test_pods_of_two_machines_reach_each_other(world, hosts, kind):
    near, far = (host.do("add", 7, ALICE) for host in hosts)
    world.pod("n2", 7).serve("", PORT, kind)
    assert world.pod("n1", 7).asks(far.address, PORT, kind) == str(near.address)


def test_pod_is_found_as_it_was_made(hosts):
    pod = hosts[0].do("add", 7, ALICE)
    assert hosts[0].do("observe").pods == {7: pod}
    hosts[0].do("check", 7)


def test_nothing_is_left_of_a_removed_pod(world, hosts):
    hosts[0].do("add", 7, ALICE)
    hosts[0].do("remove", 7)
    hosts[0].do("remove", 7)
    found = hosts[0].do("observe")
    assert (found.pods, found.broken) == ({}, frozenset())
    assert "veth" not in hosts[0].place.ip("-o link")
    assert world.addresses_in_use("n1") == set()
    assert not list((world.folder / "n1/records").iterdir())


def test_two_pods_have_two_addresses(hosts):
    assert hosts[0].do("add", 7, ALICE).address != hosts[0].do("add", 8, ALICE).address


def test_damaged_pod_is_noticed_and_connected_again_under_its_processes(world, hosts):
    hosts[0].do("add", 7, ALICE)
    inside = world.pod("n1", 7)
    inside.ip("link delete eth0")
    with pytest.raises(CniError, match="isthmus-flannel-7 has lost its eth0"):
        hosts[0].do("check", 7)
    pod = hosts[0].do("add", 7, ALICE)
    assert str(pod.address) in inside.ip("-4 -o addr show eth0")
    assert world.addresses_in_use("n1") == {pod.address}


@pytest.mark.parametrize("lost", ["record", "namespace"])
def test_half_of_a_pod_is_broken_and_can_be_removed(world, hosts, lost):
    hosts[0].do("add", 7, ALICE)
    if lost == "record":
        (world.folder / "n1/records/7.json").write_text("{")
    else:
        hosts[0].place.do(namespaces.remove, namespaces.RUN / "isthmus-flannel-7")
    assert hosts[0].do("observe").broken == {7}
    hosts[0].do("remove", 7)
    assert hosts[0].do("observe").broken == frozenset()
    assert world.addresses_in_use("n1") == set()


def test_failed_pod_leaves_no_address(world, hosts):
    (world.folder / "plugins/bridge").rename(world.folder / "plugins/gone")
    try:
        with pytest.raises(CniError, match="bridge"):
            hosts[0].do("add", 7, ALICE)
    finally:
        (world.folder / "plugins/gone").rename(world.folder / "plugins/bridge")
    assert hosts[0].do("observe").broken == {7}
    assert world.addresses_in_use("n1") == set()
    assert hosts[0].do("add", 7, ALICE).address


def test_pods_and_subnet_survive_the_death_of_flanneld(world, hosts):
    near, far = (host.do("add", 7, ALICE) for host in hosts)
    before = world.subnet("n2")
    world.pod("n2", 7).serve("", PORT)
    world.stop("n2", kill=True)
    assert world.pod("n1", 7).asks(far.address, PORT) == str(near.address)
    world.start("n2")
    assert world.subnet("n2") == before
    assert world.pod("n1", 7).asks(far.address, PORT) == str(near.address)


def test_without_a_subnet_a_pod_is_refused_by_name_of_the_file(world, hosts):
    path = world.folder / "n1/subnet.env"
    text = path.read_text()
    path.unlink()
    try:
        with pytest.raises(CniError, match=r"flannel: ADD isthmus-flannel-7: .*subnet\.env"):
            hosts[0].do("add", 7, ALICE)
    finally:
        path.write_text(text)


def test_address_of_the_bridge_is_a_pods_gateway(hosts):
    pod = hosts[0].do("add", 7, ALICE)
    assert f"{pod.gateway}/24" in hosts[0].place.ip("-4 -o addr show iflannel")
    assert isinstance(pod.gateway, IPv4Address)
