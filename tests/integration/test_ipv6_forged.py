"""IPv6 frames that pretend to come from somebody else; each is also seen to arrive without the filter."""

from contextlib import ExitStack
from ipaddress import IPv6Address

import pytest

from isthmus.model.node_network import mac
from tests.integration.test_ipv6 import NEAR, RANGE
from tests.integration.test_rules_forged import received, tap, wait_for
from tests.support.networks import packets
from tests.support.networks.namespaces import needs_root
from tests.support.networks.pod_networks import ALICE, PodNetworks

pytestmark = needs_root
PORT = 6000
NOBODY, ALL_NODES, ROUTER = map(IPv6Address, ("::", "ff02::1", "fe80::1"))
NS, NA, RA, REDIRECT, REPORT = 135, 136, 134, 137, 143
# Six bytes of padding, as a router alert would be.
OPTIONS = bytes([58, 0, 1, 4, 0, 0, 0, 0])


@pytest.fixture(scope="module", params=[True, False], ids=["filtered", "open"])
def filtered(request):
    return request.param


@pytest.fixture(scope="module")
def world(filtered):
    with ExitStack() as stack:
        yield PodNetworks.served(stack, filtered, RANGE, NEAR)


class Sender:
    """Alice's pod on n1, as she writes frames there to her pod on n2."""

    def __init__(self, world):
        addresses = (world.pod_address("n1", 1), world.leg("n1", ALICE), world.pod_address("n2", 1))
        self.own, self.leg, self.target = map(world.six, addresses)
        self.alien, self.near = world.six(world.pod_address("n2", 2)), world.six(NEAR.addresses[0])
        self.link = IPv6Address("fe80::858:aff:fe80:165")
        self.mine, self.legs = packets.link_layer(2, mac(self.own)), packets.link_layer(2, mac(self.leg))
        self.asking = packets.link_layer(1, mac(self.own))

    def udp(self, sender, data):
        return packets.udp6(sender, self.target, PORT, data)

    def message(self, kind, sender, about, option=b""):
        return packets.neighbour(kind, sender, self.target, about, option)

    def honest(self):
        own = self.own
        return {
            "UDP": self.udp(own, b"honest"),
            "to all nodes of its network": packets.udp6(own, ALL_NODES, PORT, b"all"),
            "advertisement": self.message(NA, own, own, self.mine),
            "confirmation": self.message(NA, own, own),
            "solicitation": self.message(NS, own, self.target, self.asking),
            "solicitation of a pod on the same node": self.message(NS, own, self.near, self.asking),
        }

    def neighbours(self):
        """Forged neighbour discovery."""
        own, leg = self.own, self.leg
        return {
            "advertisement for the leg": self.message(NA, own, leg, self.mine),
            "advertisement for the leg, as the leg": self.message(NA, leg, leg, self.mine),
            "advertisement with the MAC of the leg": self.message(NA, own, own, self.legs),
            "advertisement with two MACs": self.message(NA, own, own, self.mine + self.legs),
            "advertisement with the option of solicitations": self.message(NA, own, own, self.asking),
            "confirmation for the leg": self.message(NA, own, leg),
            "solicitation with the MAC of the leg": self.message(NS, own, self.target, packets.link_layer(1, mac(leg))),
            "solicitation without a MAC": self.message(NS, own, self.alien),
            "solicitation whether the address of the leg is free": self.message(NS, NOBODY, leg),
        }

    def forged(self):
        own, target, body = self.own, self.target, bytes([64, 0, 7, 8]) + bytes(8)
        return self.neighbours() | {
            "address of the leg": self.udp(self.leg, b"leg"),
            "address of another pod of the same user": self.udp(self.near, b"near"),
            "address of another user": self.udp(self.alien, b"alien"),
            "address of the link": self.udp(self.link, b"link"),
            "nobody's address": self.udp(NOBODY, b"nobody"),
            "router advertisement": packets.icmpv6(RA, own, target, body),
            "router advertisement to all": packets.icmpv6(RA, ROUTER, ALL_NODES, body),
            "router advertisement behind options": packets.icmpv6(RA, own, target, bytes(12), OPTIONS),
            "UDP behind options": packets.ipv6(own, target, 0, OPTIONS + bytes(8)),
            "redirect": packets.icmpv6(REDIRECT, own, target, bytes(4) + own.packed + self.leg.packed),
            "multicast listener report": packets.icmpv6(REPORT, own, target, bytes(4)),
            "out of its network": packets.udp6(own, IPv6Address("2001:db8::1"), PORT, b"out"),
            "to groups of other networks": packets.udp6(own, IPv6Address("ff05::1"), PORT, b"site"),
        }

    def frames(self):
        """The MAC that each comes from, the packet, and whether it is honest."""
        frames = {name: (mac(self.own), packet, True) for name, packet in self.honest().items()}
        frames |= {name: (mac(self.own), packet, False) for name, packet in self.forged().items()}
        return frames | {"MAC of the leg": (mac(self.leg), self.udp(self.own, b"as the leg"), False)}


def test_pod_sends_only_with_its_own_mac_and_address(world, filtered):
    passed, sent = set(), Sender(world).frames()
    target = mac(world.pod_address("n2", 1))
    with tap(world.pods["n1", 1]) as sender, tap(world.pods["n2", 1]) as receiver:
        for source, packet, _ in sent.values():
            sender.send(packets.ethernet(target, source, packets.IPV6, packet))
        while got := received(receiver, 0.5):
            passed |= {name for name, (_, packet, _) in sent.items() if packet in got}
    assert passed == ({name for name, (*_, honest) in sent.items() if honest} if filtered else set(sent))


def test_pod_cannot_take_over_an_address(world, filtered):
    leg, (attacker, victim) = world.six(world.leg("n1", ALICE)), (world.pods[name, 1] for name in ("n1", "n2"))
    own, target = (world.six(world.pod_address(name, 1)) for name in ("n1", "n2"))
    victim.ip("-6 neigh flush dev eth0")
    assert victim.pings(leg)
    assert mac(leg) in victim.ip(f"-6 neigh show {leg}")
    with tap(attacker) as sender:
        claim = packets.neighbour(NA, leg, target, leg, packets.link_layer(2, mac(own)))
        sender.send(packets.ethernet(mac(target), mac(own), packets.IPV6, claim))
    seen = wait_for(lambda: victim.ip(f"-6 neigh show {leg}"), lambda shown: mac(own) in shown)
    assert (mac(own) in seen) is not filtered


def test_router_advertisement_is_ignored(world, filtered):
    """A host's own root speaks as a router, which no filter forbids, or a pod's: neither pods nor legs listen."""
    prefix = bytes([3, 4, 64, 0xC0]) + (3600).to_bytes(4) * 2 + bytes(4) + IPv6Address("2001:db8:bad::").packed
    body = bytes([64, 0, 7, 8]) + bytes(8) + prefix + packets.link_layer(1, "0a:58:00:00:00:09")
    host, pod, leg = world.nodes.places["n1"], world.pods["n1", 1], f"il{ALICE}"
    frame = packets.ethernet(
        "33:33:00:00:00:01",
        "0a:58:00:00:00:09",
        packets.IPV6,
        packets.icmpv6(RA, ROUTER, ALL_NODES, body),
    )
    with tap(pod) as inside, tap(host, leg) as outside:
        outside.send(frame)
        assert frame[14:] in wait_for(lambda: received(inside, 0.5), lambda got: frame[14:] in got)
    with tap(pod) as inside, tap(host, leg) as outside:
        inside.send(frame)
        heard = wait_for(lambda: received(outside, 0.5), lambda got: frame[14:] in got, 1 if filtered else 20)
        assert (frame[14:] in heard) is not filtered
    for place, device in ((pod, "eth0"), (host, leg)):
        assert "2001:db8" not in place.ip(f"-6 addr show dev {device}")
        assert "default" not in place.ip(f"-6 route show dev {device}")
