"""Who reaches whom by the pod networks alone: members do not forward here, and there is no packet filter."""

from contextlib import ExitStack

import pytest

from tests.support.networks.namespaces import TCP, UDP, needs_root
from tests.support.networks.pod_networks import ALICE, BOB, MEMBERS, PodNetworks, sysctl

pytestmark = needs_root
PORT = 5000


@pytest.fixture(scope="module")
def world():
    with ExitStack() as stack:
        made = PodNetworks.of(stack)
        for place in (*made.pods.values(), *made.nodes.places.values()):
            for kind in (TCP, UDP):
                stack.enter_context(place.serve("", PORT, kind))
        for name in MEMBERS:
            sysctl(made.nodes.places[name], "ipv4/ip_forward", "0")
        yield made


@pytest.mark.parametrize("kind", [TCP, UDP])
def test_pod_reaches_the_users_pod_on_another_node(world, kind):
    seen = world.pods["n1", 1].asks(world.pod_address("n2", 1), PORT, kind)
    assert seen == str(world.pod_address("n1", 1))


def test_pod_pings_the_users_pod_on_another_node_as_an_ordinary_user(world):
    assert world.pods["n1", 1].pings(world.pod_address("n2", 1))


@pytest.mark.parametrize("node", ["n1", "n2"])
@pytest.mark.parametrize("kind", [TCP, UDP])
def test_pod_does_not_reach_another_users_pod(world, node, kind):
    assert world.pods["n1", 1].refused(world.pod_address(node, 2), PORT, kind)


def test_pod_does_not_ping_another_users_pod(world):
    assert not world.pods["n1", 1].pings(world.pod_address("n2", 2), wait_s=0.3)


@pytest.mark.parametrize("node", MEMBERS)
def test_host_with_a_leg_reaches_every_pod_of_the_user(world, node):
    for other in ("n1", "n2"):
        assert world.nodes.places[node].asks(world.pod_address(other, 1), PORT) == str(world.leg(node, ALICE))


def test_host_without_a_leg_reaches_no_pod(world):
    assert world.nodes.places["n3"].refused(world.pod_address("n1", 2), PORT)


@pytest.mark.parametrize("node", MEMBERS)
def test_pod_reaches_the_users_leg_on_every_node(world, node):
    assert world.pods["n1", 1].asks(world.leg(node, ALICE), PORT) == str(world.pod_address("n1", 1))


def test_pod_reaches_the_jobs_other_node_by_its_leg_without_translation(world):
    assert world.pods["n1", 1].asks(world.nodes.address("n2"), PORT) == str(world.pod_address("n1", 1))
    assert world.pods["n1", 1].refused(world.nodes.address("n3"), PORT)


def test_host_of_the_job_reaches_a_pod_from_the_nodes_own_address(world):
    here = world.nodes.address("n2")
    assert world.nodes.places["n2"].asks(world.pod_address("n1", 1), PORT, bind=here) == str(here)


def test_pod_sends_packets_of_the_largest_size_to_another_node(world):
    pod, server = world.pods["n1", 2], world.pods["n2", 2].open(UDP, "", PORT + 1)
    sender = pod.open(UDP)
    sender.setsockopt(0, 10, 2)  # IP_MTU_DISCOVER: never fragment
    sender.sendto(bytes(1450 - 28), (str(world.pod_address("n2", 2)), PORT + 1))
    server.settimeout(30)
    assert len(server.recv(2000)) == 1450 - 28


def test_pod_has_no_ipv6(world):
    assert world.pods["n1", 1].ip("-6 addr") == ""
    for name in MEMBERS:
        shown = world.nodes.places[name].ip("-6 -o addr show up")
        assert not {" il", " ix", " iv"} & {shown[at : at + 3] for at in range(len(shown))}


def test_pod_is_found_without_asking_other_nodes(world):
    for name in ("n1", "n2"):
        world.nodes.places[name].run("bridge", "fdb", "del", "00:00:00:00:00:00", "dev", f"ix{BOB}", "self")
        world.pods[name, 2].ip("neigh flush dev eth0")
    assert world.pods["n1", 2].asks(world.pod_address("n2", 2), PORT)
    assert world.pods["n1", 2].asks(world.leg("n2", BOB), PORT)
    for name in ("n1", "n2"):
        world.nodes.places[name].do(world.kernels[name].add_leg, world.plan(name).legs[BOB])
