"""Packets and frames that pretend to come from somebody else; each is also seen to arrive without the filter."""

import socket
import sys
from contextlib import ExitStack, closing

import pytest

from isthmus.model.node_network import mac
from tests.support.networks import packets
from tests.support.networks.namespaces import UDP, Namespace, needs_root
from tests.support.networks.pod_networks import ALICE, EVE, PodNetworks, sysctl

pytestmark = needs_root
PORT = 6000
# What arrives, arrives at once; on a busy machine later.
ARRIVES_S = 30
SEND = """
import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
if sys.argv[3]:
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[3].encode())
sender.sendto(bytes.fromhex(sys.argv[4]), (sys.argv[1], int(sys.argv[2])))
"""
TRANSLATE = """
table ip guest {
    chain postrouting {
        type nat hook postrouting priority srcnat
        oifname "eth0" masquerade
    }
}
"""


@pytest.fixture(scope="module", params=[True, False], ids=["filtered", "open"])
def filtered(request):
    return request.param


@pytest.fixture(scope="module")
def world(filtered):
    with ExitStack() as stack:
        yield PodNetworks.served(stack, filtered)


@pytest.fixture
def victim(world):
    """Alice's pod on n2 and what it receives."""
    with world.pods["n2", 1].open(UDP, "", PORT) as receiver:
        yield receiver


def received(receiver, wait_s):
    receiver.settimeout(wait_s)
    try:
        return receiver.recv(999)
    except OSError:
        return b""


def send(place, user, address, port, data, device=""):
    arguments = (str(address), str(port), device, data.hex())
    return place.run(sys.executable, "-ISc", SEND, *arguments, user=user, check=False)


def inner(world, data):
    """Return a frame as alice's pod on n1 would send it to her pod on n2."""
    sender, target = world.pod_address("n1", 1), world.pod_address("n2", 1)
    return packets.ethernet(mac(target), mac(sender), packets.IPV4, packets.udp(sender, target, PORT, data))


@pytest.mark.parametrize(
    ("who", "user", "member", "needs_filter"),
    [("n1", EVE, True, True), ("n1", ALICE, True, True), ("outside", 0, False, True), ("n1", 0, True, False)],
)
def test_forged_vxlan_arrives_from_root_of_members_only(world, filtered, victim, who, user, member, needs_filter):
    forged = packets.vxlan(ALICE, inner(world, b"forged"))
    send(world.nodes.places[who], user, world.nodes.address("n2"), 4789, forged)
    arrives = not filtered or not needs_filter
    assert received(victim, ARRIVES_S if arrives else 0.3) == (b"forged" if arrives else b"")


def test_forged_vxlan_to_the_senders_own_node_is_dropped(world, filtered):
    with world.pods["n1", 1].open(UDP, "", PORT) as receiver:
        sender, target = world.pod_address("n2", 1), world.pod_address("n1", 1)
        packet = packets.udp(sender, target, PORT, b"forged")
        frame = packets.ethernet(mac(target), mac(sender), packets.IPV4, packet)
        send(world.nodes.places["n1"], EVE, world.nodes.address("n1"), 4789, packets.vxlan(ALICE, frame))
        assert bool(received(receiver, 0.3 if filtered else ARRIVES_S)) is not filtered


def test_forged_vxlan_from_a_pod_is_dropped(world, filtered, victim):
    forged = packets.vxlan(ALICE, inner(world, b"forged"))
    send(world.pods["n1", 2], 0, world.nodes.address("n2"), 4789, forged)
    assert bool(received(victim, 0.3 if filtered else ARRIVES_S)) is not filtered


def test_the_kernels_own_vxlan_arrives_from_users(world, victim):
    send(world.nodes.places["n1"], ALICE, world.pod_address("n2", 1), PORT, b"own")
    assert received(victim, ARRIVES_S) == b"own"


@pytest.mark.parametrize("address", ["255.255.255.255", "224.0.0.1"])
@pytest.mark.parametrize(("device", "node"), [(f"il{ALICE}", "n2"), (f"ix{ALICE}", "n2"), ("iv1", "n1")])
def test_another_uid_that_binds_to_an_interface_reaches_no_pod(world, filtered, address, device, node):
    with world.pods[node, 1].open(UDP, "", PORT) as receiver:
        for user, expected in ((EVE, b"" if filtered else b"bound"), (0, b"bound")):
            send(world.nodes.places["n1"], user, address, PORT, b"bound", device)
            assert received(receiver, ARRIVES_S if expected else 0.3) == expected


def test_forged_vxlan_from_another_network_of_a_node_is_dropped(world, filtered, victim):
    """So a pod of the driver flannel: its node forwards for it, with its own address."""
    with closing(Namespace()) as guest:
        node = world.nodes.places["n1"]
        node.ip(f"link add guest type veth peer name eth0 netns {guest.thread}")
        for place, device, address in ((node, "guest", "10.244.0.1"), (guest, "eth0", "10.244.0.2")):
            place.ip(f"addr add {address}/24 dev {device}")
            place.ip(f"link set {device} up")
        guest.ip("route add default via 10.244.0.1")
        node.run("nft", "-f", "-", text=TRANSLATE)
        send(guest, 0, world.nodes.address("n2"), 4789, packets.vxlan(ALICE, inner(world, b"forged")))
        assert bool(received(victim, 0.3 if filtered else ARRIVES_S)) is not filtered
        assert guest.asks(world.nodes.address("n2"), 5000, UDP) == str(world.nodes.address("n1"))


def spoofs(world):
    """Return frames of alice's pod on n1 to her pod on n2; the first is honest."""
    own, other, target = world.pod_address("n1", 1), world.leg("n1", ALICE), world.pod_address("n2", 1)
    alien = world.pod_address("n2", 2)

    def packet(sender_mac, sender, kind=packets.IPV4, tag=b""):
        return packets.ethernet(mac(target), sender_mac, kind, tag + packets.udp(sender, target, PORT, b"marked"))

    return {
        "honest": packet(mac(own), own),
        "MAC of the leg": packet(mac(other), own),
        "address of the leg": packet(mac(own), other),
        "address of another user": packet(mac(own), alien),
        "VLAN": packet(mac(own), own, packets.VLAN, b"\0\1\x08\0"),
        "IPv6": packets.ethernet(
            mac(target), mac(own), packets.IPV6, b"\x60\0\0\0\0\x06\x3b\x40" + bytes(32) + b"marked"
        ),
        "ARP, honest": arp(target, mac(own), mac(own), own),
        "ARP, address of the leg": arp(target, mac(own), mac(own), other),
        "ARP, MAC of the leg": arp(target, mac(own), mac(other), own),
        "ARP, frame of the leg": arp(target, mac(other), mac(own), own),
    }


def arp(target, frame_mac, sender_mac, sender):
    claim = packets.arp_reply(sender_mac, sender, mac(target), target)
    return packets.ethernet(mac(target), frame_mac, packets.ARP, claim + b"marked")


def test_pod_sends_only_with_its_own_mac_and_address(world, filtered):
    passed = set()
    with tap(world.pods["n1", 1]) as sender, tap(world.pods["n2", 1]) as receiver:
        for name, frame in spoofs(world).items():
            sender.send(frame)
            while got := received(receiver, 0.2):
                passed |= {name} if b"marked" in got else set()
    assert passed == ({"honest", "ARP, honest"} if filtered else set(spoofs(world)))


def test_pod_cannot_take_over_an_address_by_arp(world, filtered):
    leg, (attacker, victim) = world.leg("n1", ALICE), (world.pods[name, 1] for name in ("n1", "n2"))
    sysctl(victim, "ipv4/neigh/eth0/locktime", "0")
    victim.ip("neigh flush dev eth0")
    assert victim.pings(leg)
    assert mac(leg) in victim.ip(f"neigh show {leg}")
    own, target = mac(world.pod_address("n1", 1)), world.pod_address("n2", 1)
    with tap(attacker) as sender:
        claim = packets.arp_reply(own, leg, mac(target), target)
        sender.send(packets.ethernet(mac(target), own, packets.ARP, claim))
    seen = wait_for(lambda: victim.ip(f"neigh show {leg}"), lambda shown: own in shown)
    assert (own in seen) is not filtered


def tap(place, device="eth0"):
    """Open a socket for whole frames."""
    opened = place.do(socket.socket, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    opened.bind((device, 3))
    return opened


def wait_for(ask, is_so, tries=20):
    """Return the answer that is so, or the last."""
    for _ in range(tries):
        if is_so(reported := ask()):
            break
    return reported
