"""Who does not reach whom because of the packet filter; each case is also seen to work without it."""

import socket
from contextlib import ExitStack

import pytest

from tests.support.networks.namespaces import TCP, UDP, needs_root
from tests.support.networks.pod_networks import ALICE, BOB, DENIED, EVE, METADATA, SERVED, PodNetworks

pytestmark = needs_root
TCP_REPAIR = 19

# Name -> (who, function of the world that returns whom he asks, further arguments).
CASES = {
    "another uid, a pod on his host": ("n1", lambda world: world.pod_address("n1", 1), {"user": BOB}),
    "another uid, a pod on another host": ("n1", lambda world: world.pod_address("n2", 1), {"user": BOB}),
    "another uid, a pod, by UDP": ("n1", lambda world: world.pod_address("n1", 1), {"user": EVE, "kind": UDP}),
    "another uid, the node's own leg": ("n1", lambda world: world.leg("n1", ALICE), {"user": BOB}),
    "another uid, another node's leg": ("n1", lambda world: world.leg("n2", ALICE), {"user": BOB}),
    "another uid, from an address that may": ("n1", lambda world: world.pod_address("n1", 1), {"user": EVE, "bind": 1}),
    "a pod, another user's pod on its node": (("n1", 2), lambda world: world.pod_address("n1", 1), {}),
    "a pod, another user's pod, by UDP": (("n1", 2), lambda world: world.pod_address("n1", 1), {"kind": UDP}),
    "a pod, another user's pod elsewhere": (("n1", 2), lambda world: world.pod_address("n2", 1), {}),
    "a pod, another user's leg on its node": (("n1", 2), lambda world: world.leg("n1", ALICE), {}),
    "a pod, a listener on all addresses, by the leg": (("n1", 1), lambda world: world.leg("n1", ALICE), {}),
    "a pod, its node": (("n1", 1), lambda world: world.nodes.address("n1"), {}),
    "a pod, its node, by UDP": (("n1", 1), lambda world: world.nodes.address("n1"), {"kind": UDP}),
    "a pod, another node of the job": (("n1", 1), lambda world: world.nodes.address("n2"), {}),
    "a pod, a node without the job": (("n1", 1), lambda world: world.nodes.address("n3"), {}),
    "a pod, the metadata service": (("n1", 1), lambda world: METADATA, {}),
    "a pod, what a rule denies": (("n1", 1), lambda world: DENIED, {}),
    "outside, a pod": ("outside", lambda world: world.pod_address("n1", 1), {}),
    "outside, a leg": ("outside", lambda world: world.leg("n1", ALICE), {}),
}


@pytest.fixture(scope="module")
def world():
    with ExitStack() as stack:
        yield PodNetworks.served(stack, filtered=True)


@pytest.fixture(scope="module")
def open_world():
    with ExitStack() as stack:
        yield PodNetworks.served(stack, filtered=False)


def asks(world, case, wait_s):
    who, whom, more = CASES[case]
    place = world.nodes.places[who] if isinstance(who, str) else world.pods[who]
    bind = world.leg("n1", ALICE) if more.get("bind") else ""
    arguments = {"kind": TCP, "user": None, **more, "bind": bind}
    return place.asks(whom(world), SERVED, wait_s=wait_s, **arguments)


@pytest.mark.parametrize("case", CASES)
def test_refused_by_the_filter(world, case):
    assert not asks(world, case, wait_s=0.3)


@pytest.mark.parametrize("case", CASES)
def test_reached_without_the_filter(open_world, case):
    assert asks(open_world, case, wait_s=15)


def test_refusal_is_reported_at_once(world):
    asked = world.nodes.places["n1"].run(
        *("python3", "-c", f"import socket; socket.create_connection(('{world.pod_address('n1', 1)}', {SERVED}), 9)"),
        user=BOB,
        check=False,
    )
    assert "No route to host" in asked.stderr


def vanish(connected):
    """Close a TCP socket without a packet, as a crashed machine does."""
    connected.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    connected.close()


def test_another_uid_cannot_continue_a_connection_that_conntrack_remembers(world):
    leg, pod = world.leg("n1", ALICE), world.pod_address("n1", 1)
    with world.pods["n1", 1].open(TCP, "", 5999) as server:
        server.listen()
        client = world.nodes.places["n1"].open(TCP, leg, 40000)
        client.connect((str(pod), 5999))
        vanish(client)
        vanish(server.accept()[0])
        world.nodes.places["n1"].asks(pod, 5999, user=BOB, bind=f"{leg}:40000", wait_s=0.3)
        server.settimeout(0.3)
        with pytest.raises(TimeoutError):
            server.accept()
