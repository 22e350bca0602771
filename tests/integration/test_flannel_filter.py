"""Who reaches whom in Flannel's network with the packet filter in force: two members and a machine outside."""

import json
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from isthmus.clients import nftables
from isthmus.model.flannel import PORT
from isthmus.model.network import Node, State
from isthmus.model.node_network import NodePlan
from isthmus.network.drivers.flannel.rules import Backend, Flannel
from isthmus.network.node import rules
from tests.integration.test_rules_forged import ARRIVES_S, received, send
from tests.support.networks import packets
from tests.support.networks.flannel import RANGE, FlannelNodes
from tests.support.networks.namespaces import TCP, UDP, needs_root
from tests.support.networks.pod_networks import (
    ALICE,
    ALICES,
    ALLOWED,
    BOB,
    DENIED,
    DNS,
    EVE,
    METADATA,
    OPEN,
    SERVED,
    SLURM,
)
from tests.support.networks.pod_networks import SETTINGS as PRIVATE
from tests.support.servers.etcd import running

pytestmark = needs_root
PMIX, ETCD, FORGED = 40000, 2379, 6000
SETTINGS = replace(PRIVATE, pods=IPv4Network("10.64.0.0/10"))


@pytest.fixture(scope="module", params=list(Backend))
def world(request, tmp_path_factory):
    with ExitStack() as stack:
        cluster = stack.enter_context(running(tmp_path_factory.mktemp("etcd")))
        made = FlannelNodes.of(stack, cluster, tmp_path_factory.mktemp("flannel"), request.param, "n1", "n2")
        yield World(
            stack,
            made,
            replace(
                SETTINGS,
                shared=(Flannel(IPv4Network(RANGE), request.param),),
            ),
        )


class World:
    """A pod of alice's and one of bob's on each member; servers everywhere."""

    def __init__(self, stack, flannel, settings):
        self.flannel, self.nodes, self.pods, self.reported = flannel, flannel.nodes, {}, {}
        self.backend = settings.shared[0].backend
        self.outside = self._outside()
        for name in ("n1", "n2"):
            flannel.start(name)
            self._fill(stack, name, settings)

    def _outside(self):
        outside = self.nodes.add("outside")
        for address in (OPEN, DENIED, ALICES, METADATA):
            outside.ip(f"addr add {address}/32 dev lo")
        for name in ("n1", "n2"):
            self.nodes.places[name].ip(f"route add default via {self.nodes.address('outside')}")
        outside.ip(f"route add {RANGE} via {self.nodes.address('n1')}")
        for port in (SERVED, SLURM):
            outside.serve("", port)
        return outside

    def _fill(self, stack, name, settings):
        place, attachments = self.nodes.places[name], self.flannel.attachments(name)
        found = {job: place.do(attachments.add, job, uid) for job, uid in ((1, ALICE), (2, BOB))}
        members = State({each: Node(each, self.nodes.address(each)) for each in ("n1", "n2")})
        wanted = rules.elements(NodePlan(shared=found), members, name, settings)
        place.do(nftables.apply, rules.base(settings) + rules.change({}, wanted))
        for job, pod in found.items():
            self.reported[name, job], self.pods[name, job] = pod, self.flannel.pod(name, job)
            for kind in (TCP, UDP):
                stack.enter_context(self.pods[name, job].serve("", SERVED, kind))
        for port in (SERVED, SLURM, ALLOWED, ETCD):
            stack.enter_context(place.serve("", port))
        stack.enter_context(place.serve(found[1].gateway, PMIX))
        stack.enter_context(place.serve(found[1].gateway, DNS, UDP))


@pytest.mark.parametrize("kind", [TCP, UDP])
@pytest.mark.parametrize("target", [("n1", 2), ("n2", 1), ("n2", 2)])
def test_pod_reaches_every_pod_by_its_own_address(world, kind, target):
    asked = world.pods["n1", 1].asks(world.reported[target].address, SERVED, kind)
    assert asked == str(world.reported["n1", 1].address)


@pytest.mark.parametrize("name", ["n1", "n2"])
def test_host_process_of_anybody_reaches_pods(world, name):
    assert world.nodes.places["n1"].asks(world.reported[name, 1].address, SERVED, user=EVE)


def test_pod_reaches_what_listens_on_the_bridge_and_dns(world):
    pod, bridge = world.pods["n1", 1], world.reported["n1", 1].gateway
    assert pod.asks(bridge, PMIX)
    assert pod.asks(bridge, DNS, UDP)
    assert pod.refused(bridge, SERVED)


def test_pod_does_not_reach_what_listens_on_another_nodes_bridge(world):
    assert world.pods["n1", 1].refused(world.reported["n2", 1].gateway, PMIX)


@pytest.mark.parametrize("name", ["n1", "n2"])
def test_pod_reaches_slurm_and_allowed_ports_of_hosts_and_no_others(world, name):
    pod, host = world.pods["n1", 1], world.nodes.address(name)
    # Slurm's daemons on other nodes answer the pod itself, not the node.
    assert pod.asks(host, SLURM) == str(world.reported["n1", 1].address)
    assert pod.asks(host, ALLOWED)
    assert pod.refused(host, ETCD)
    assert pod.refused(host, SERVED)


def test_pod_reaches_outside_by_the_nodes_address_as_rules_let_it(world):
    assert world.pods["n1", 1].asks(OPEN, SERVED) == str(world.nodes.address("n1"))
    assert world.pods["n1", 1].asks(ALICES, SERVED)
    assert world.pods["n1", 2].refused(ALICES, SERVED)
    assert world.pods["n1", 1].refused(DENIED, SERVED)


def test_pod_does_not_reach_a_metadata_address(world):
    assert world.pods["n1", 1].refused(METADATA, SERVED)


def test_nobody_outside_reaches_a_pod_or_the_bridge(world):
    assert world.outside.refused(world.reported["n1", 1].address, SERVED)
    assert world.outside.refused(world.reported["n1", 1].gateway, PMIX)


@pytest.mark.parametrize(("who", "user", "arrives"), [("n1", 0, True), ("n1", EVE, False), ("outside", 0, False)])
def test_forged_vxlan_arrives_from_root_of_members_alone(world, who, user, arrives):
    if world.backend != Backend.VXLAN:
        pytest.skip("the backend has no VXLAN")
    sender, target = world.reported["n1", 1].address, world.reported["n2", 1].address
    device = json.loads(world.nodes.places["n2"].ip("-j link show flannel.1"))[0]["address"]
    packet = packets.udp(sender, target, FORGED, b"forged")
    forged = packets.vxlan(1, packets.ethernet(device, "0a:58:0a:81:01:02", packets.IPV4, packet))
    with world.pods["n2", 1].open(UDP, "", FORGED) as victim:
        send(world.nodes.places[who], user, world.nodes.address("n2"), PORT, forged)
        assert received(victim, ARRIVES_S if arrives else 0.3) == (b"forged" if arrives else b"")


@pytest.mark.parametrize("name", ["n1", "n2"])
def test_hosts_get_nothing_from_a_privileged_port_of_a_pod(world, name):
    pod, host = world.pods["n1", 1], world.nodes.address(name)
    assert pod.asks(host, SLURM, bind=f":{40002 + int(name[1])}")
    assert pod.refused(host, SLURM, bind=f":{700 + int(name[1])}")


def test_outside_sees_no_privileged_port_of_a_pod(world):
    with world.outside.open(UDP, OPEN, 7001) as server:
        world.pods["n1", 1].asks(OPEN, 7001, UDP, bind=":703", wait_s=0.3)
        server.settimeout(15)
        _, (address, port) = server.recvfrom(99)
    assert (address, port >= 1024) == (str(world.nodes.address("n1")), True)
