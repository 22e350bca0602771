"""Two gateways, a member with pods of two users, and a machine outside on the network that the gateways are in.

n1       alice 1, bob 2
g1       their legs
g2       the same, alice 3
outside  has the way out, as in `pod_networks`, and reaches outside addresses by ARP alone
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network

from isthmus.clients import nftables
from isthmus.clients.netlink.held import HeldAddresses
from isthmus.model.network import Exposure, Node, State, Transport
from isthmus.network.drivers.private import plan
from isthmus.network.gateways.outside import OutsideAddresses
from isthmus.network.gateways.settings import Gateways, Ingress, Outside
from isthmus.network.node import rules
from tests.support.networks.namespaces import TCP, UDP, Namespace, Nodes
from tests.support.networks.pod_networks import ALICE, BOB, PODS, SERVED, SETTINGS, PodNetworks, job, sysctl, user

MEMBERS = ("n1", "g1", "g2")
ALICE_SEEN, SITE_SEEN, SITE_LAST = map(IPv4Address, ("192.0.2.110", "192.0.2.111", "192.0.2.112"))
# What rules let in, what nobody does, and where nobody but this host's network comes from.
WEB, CLOSED, NEAR = 5000, 5001, 5002
SHUT = IPv4Network("198.51.100.0/24")
GATEWAYS = Gateways(
    (Outside(ALICE_SEEN, ALICE_SEEN, frozenset({ALICE})), Outside(SITE_SEEN, SITE_LAST)),
    (
        Ingress(False, SHUT, Transport.TCP, 1, 65535),
        Ingress(True, IPv4Network("0.0.0.0/0"), Transport.TCP, WEB, WEB, ALICE, "web"),
        Ingress(True, IPv4Network("0.0.0.0/0"), Transport.UDP, WEB, WEB, ALICE),
        Ingress(True, IPv4Network("203.0.113.0/24"), Transport.TCP, NEAR, NEAR),
    ),
)
GATED = replace(SETTINGS, gateways=GATEWAYS)


def exposure(port: int, uid: int = ALICE, protocol: Transport = Transport.TCP, name: str = "web") -> Exposure:
    """Return a port of a reservation as a user opens it."""
    seen = GATEWAYS.of(uid)
    assert seen
    return Exposure(seen.first, protocol, port, uid, name)


def state(nodes: Nodes, exposed: Iterable[Exposure] = (), gateway: str = "g1") -> State:
    """Return what etcd would know; each user's pod has the address of a reservation."""
    members = {name: Node(name, nodes.address(name), gateway=name != "n1") for name in MEMBERS}
    users = [
        replace(each, reserved={"web": each.blocks[0][101]}) for each in (user(ALICE, *MEMBERS), user(BOB, *MEMBERS))
    ]
    alice, bob = users
    jobs = [replace(each, reservation="web") for each in (job(1, alice, "n1"), job(2, bob, "n1"))]
    jobs.append(replace(job(3, alice, "g2"), addresses=(alice.blocks[0][103],)))
    return State(
        members,
        {each.uid: each for each in users},
        {each.id: each for each in jobs},
        gateway=gateway,
        exposed={each.door: each for each in exposed},
    )


@dataclass
class Placed:
    """The addresses of a machine, for any thread."""

    place: Namespace
    holder: HeldAddresses

    def hold(self, wanted: Collection[IPv4Address]) -> bool:
        """See Holder."""
        return self.place.do(self.holder.hold, wanted)

    def announce(self, addresses: Collection[IPv4Address]) -> None:
        """See Holder."""
        self.place.do(self.holder.announce, addresses)

    def reaches(self, addresses: Collection[IPv4Address]) -> bool:
        """See Holder."""
        return self.place.do(self.holder.reaches, addresses)

    def is_elsewhere(self, address: IPv4Address) -> bool:
        """See Holder."""
        return self.place.do(self.holder.is_elsewhere, address)


@dataclass
class GatedNetworks:
    """The whole world of a test."""

    world: PodNetworks
    held: dict[str, OutsideAddresses] = field(default_factory=dict)

    @classmethod
    def of(cls, stack: ExitStack, exposed: Iterable[Exposure] = ()) -> GatedNetworks:
        nodes = Nodes.of(stack, *MEMBERS)
        made = cls(PodNetworks(nodes, state(nodes, exposed)))
        for name in MEMBERS:
            made.world.kernels[name] = nodes.kernel(name)
            stack.callback(made.world.kernels[name].close)
            # On one of them bridged frames do not pass the inet hooks.
            sysctl(nodes.places[name], "bridge/bridge-nf-call-iptables", "0" if name == "g1" else "1")
            sysctl(nodes.places[name], "ipv4/ip_forward", "1")
            made.world.make(name)
        made._outside()
        for place in (*nodes.places.values(), *made.world.pods.values()):
            for kind in (TCP, UDP):
                stack.enter_context(place.serve("", SERVED, kind))
        for name in ("g1", "g2"):
            holder = nodes.places[name].do(HeldAddresses)
            stack.callback(holder.close)
            made.held[name] = OutsideAddresses(name, GATEWAYS.addresses, Placed(nodes.places[name], holder))
        for name in MEMBERS:
            made.follow(name, made.world.state)
        return made

    def _outside(self) -> None:
        outside = self.world.with_outside_of(MEMBERS)
        # Somebody out there tries the pods' own addresses by a gateway.
        outside.ip(f"route replace {PODS} via {self.world.nodes.address('g1')}")

    def follow(self, name: str, known: State) -> None:
        """Let a member do what it knows."""
        wanted = plan.desired(known, name)
        elements = rules.elements(wanted, known, name, GATED)
        self.place(name).do(nftables.apply, rules.base(GATED) + rules.change({}, elements))
        if name in self.held:
            self.held[name].follow(wanted, known)

    def lead(self, gateway: str) -> None:
        """Let another gateway lead out, everywhere."""
        self.world.state = replace(self.world.state, gateway=gateway)
        for name in MEMBERS:
            self.follow(name, self.world.state)

    def announced(self, gateway: str) -> bool:
        """Let a gateway say once more where the addresses are: who heard of another a moment ago does not listen."""
        self.held[gateway].announce()
        return True

    def pod(self, number: int) -> Namespace:
        """Return alice's pod, 1, or bob's, 2; or alice's on a gateway, 3."""
        return self.world.pods["g2" if number == 3 else "n1", number]

    def place(self, name: str) -> Namespace:
        """Return a machine."""
        return self.world.nodes.places[name]
