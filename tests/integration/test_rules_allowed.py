"""Who reaches whom through the packet filter, and what address he is seen with."""

import socket
from contextlib import ExitStack

import pytest

from tests.support.networks.namespaces import TCP, UDP, needs_root
from tests.support.networks.pod_networks import (
    ADMIN,
    ALICE,
    ALICES,
    ALLOWED,
    BOB,
    DENIED,
    DNS,
    MEMBERS,
    METADATA,
    OPEN,
    SERVED,
    SLURM,
    PodNetworks,
)

pytestmark = needs_root
PMIX = 45678


@pytest.fixture(scope="module")
def world():
    with ExitStack() as stack:
        made = PodNetworks.served(stack, filtered=True)
        for name in MEMBERS:
            for port in (SLURM, ALLOWED):
                stack.enter_context(made.nodes.places[name].serve("", port))
            leg = made.leg(name, ALICE)
            for port, kind in ((DNS, TCP), (DNS, UDP), (PMIX, TCP), (PMIX, UDP), (22, TCP)):
                stack.enter_context(made.nodes.places[name].serve(leg, port, kind))
        yield made


@pytest.fixture
def pod(world):
    return world.pods["n1", 1]


@pytest.mark.parametrize("user", [ALICE, ADMIN, 0])
@pytest.mark.parametrize("kind", [TCP, UDP])
def test_owner_admin_and_root_reach_pods_from_a_host(world, user, kind):
    for node in ("n1", "n2"):
        seen = world.nodes.places["n1"].asks(world.pod_address(node, 1), SERVED, kind, user)
        assert seen == str(world.leg("n1", ALICE))


def test_owner_reaches_pods_from_a_node_with_a_lease_only(world):
    assert world.nodes.places["n3"].asks(world.pod_address("n1", 1), SERVED, user=ALICE) == str(world.leg("n3", ALICE))
    assert world.nodes.places["n3"].refused(world.pod_address("n1", 2), SERVED, user=BOB)


@pytest.mark.parametrize("kind", [TCP, UDP])
def test_pods_of_a_user_reach_one_another_as_themselves(world, pod, kind):
    assert pod.asks(world.pod_address("n2", 1), SERVED, kind) == str(world.pod_address("n1", 1))
    assert world.pods["n2", 1].asks(world.pod_address("n1", 1), SERVED, kind) == str(world.pod_address("n2", 1))


@pytest.mark.parametrize("port", [SLURM, ALLOWED])
def test_pod_reaches_the_services_of_nodes(world, pod, port):
    own, untranslated = world.nodes.address("n1"), str(world.pod_address("n1", 1))
    assert pod.asks(own, port) == untranslated
    assert pod.asks(world.nodes.address("n2"), port) == untranslated
    assert pod.asks(world.nodes.address("n3"), port) == str(own)


def test_pod_reaches_dns_and_listeners_of_its_own_leg(world, pod):
    for port, kind in ((DNS, TCP), (DNS, UDP), (PMIX, TCP)):
        assert pod.asks(world.leg("n1", ALICE), port, kind)
    assert pod.asks(world.leg("n2", ALICE), PMIX)
    assert pod.pings(world.leg("n1", ALICE))


def test_pod_reaches_nothing_else_of_its_leg(world, pod):
    assert pod.refused(world.leg("n1", ALICE), 22)
    assert pod.refused(world.leg("n1", ALICE), PMIX, UDP)
    assert world.pods["n1", 2].refused(world.leg("n1", ALICE), PMIX)
    assert world.pods["n1", 2].refused(world.leg("n1", ALICE), DNS, UDP)
    assert not pod.pings(world.nodes.address("n1"), wait_s=0.3)


@pytest.mark.parametrize("kind", [TCP, UDP])
def test_pod_reaches_the_outside_with_its_nodes_address(world, pod, kind):
    assert pod.asks(OPEN, SERVED, kind) == str(world.nodes.address("n1"))
    assert world.pods["n2", 1].asks(OPEN, SERVED, kind) == str(world.nodes.address("n2"))


def test_first_rule_that_matches_decides_for_each_user(world, pod):
    assert pod.asks(ALICES, SERVED)
    assert pod.refused(ALICES, SERVED, UDP)
    assert world.pods["n1", 2].refused(ALICES, SERVED)
    assert world.pods["n1", 2].refused(DENIED, SERVED)


def test_hosts_reach_what_pods_do_not(world):
    for address in (METADATA, DENIED, ALICES):
        assert world.nodes.places["n1"].asks(address, SERVED, user=BOB)


SENDER = """
import socket
connection = socket.create_connection(("{}", 5999))
connection.setblocking(False)
print(connection.send(bytes(10**7)))
"""


def test_what_a_closed_connection_has_left_to_send_still_arrives(world, pod):
    """The rest is sent by the kernel, for a socket that no process and so no uid has any more."""
    with pod.open(TCP, "", 5999) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.listen()
        sender = SENDER.format(world.pod_address("n1", 1))
        sent = int(world.nodes.places["n1"].run("python3", "-c", sender, user=ALICE).stdout)
        connection, _ = server.accept()
    with connection:
        connection.settimeout(30)
        got = sum(map(len, iter(lambda: connection.recv(65536), b"")))
    assert got == sent > 10000
