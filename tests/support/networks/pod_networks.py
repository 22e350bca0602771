"""Three members and one machine outside, in namespaces, with the pod networks of two users on them.

member   leg, pods      pods
n1       alice 1, bob 2     forwards bridged frames to the inet hooks, as br_netfilter has it
n2       alice 1, bob 2     does not
n3       (alice: lease)
outside  has the way out: a server, and every address the tests want outside
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path

from isthmus.clients import nftables
from isthmus.clients.netlink.networks import Kernel
from isthmus.model.network import Driver, Job, Lease, Node, State, User
from isthmus.model.networks.ipv6 import beside, prefix
from isthmus.model.node_network import NodePlan
from isthmus.model.subids import Range
from isthmus.network.drivers.private import plan
from isthmus.network.node import rules
from tests.support.networks.namespaces import TCP, UDP, Namespace, Nodes

NET = "/proc/sys/net"
PODS = IPv4Network("10.128.0.0/12")
ALICE, BOB, EVE, ADMIN = 20001, 20002, 20003, 20009
MEMBERS = ("n1", "n2", "n3")
# Outside: reached by all, by nobody, by alice's TCP only, and what no rule names.
OPEN, DENIED, ALICES, METADATA = map(IPv4Address, ("198.51.100.7", "198.51.100.8", "198.51.100.9", "169.254.169.254"))
SERVED, SLURM, ALLOWED, DNS = 5000, 6818, 7000, 53
SETTINGS = rules.Settings(
    PODS,
    admins=frozenset({ADMIN}),
    services=(rules.Service(rules.Protocol.TCP, rules.Ports(ALLOWED, ALLOWED)),),
    egress=(
        rules.Egress(rules.Action.DENY, IPv4Network(DENIED)),
        rules.Egress(rules.Action.ALLOW, IPv4Network(ALICES), rules.Protocol.TCP, (rules.Ports(1, SERVED),), ALICE),
        rules.Egress(rules.Action.DENY, IPv4Network(ALICES)),
    ),
)


def user(uid: int, *nodes: str) -> User:
    """Return a user whose addresses follow from his uid: block 10.128.<u>.0/24, legs from .1, pods from .101."""
    block = IPv4Network(f"10.128.{uid % 100}.0/24")
    return User(uid, f"u{uid}", uid, (block,), {node: block[1 + place] for place, node in enumerate(nodes)})


def job(number: int, owner: User, *nodes: str) -> Job:
    """Return a job with a pod on each of some nodes."""
    addresses = tuple(owner.blocks[0][101 + place] for place in range(len(nodes)))
    return Job(number, owner.uid, "job", Driver.PRIVATE, nodes, addresses)


def state(nodes: Nodes) -> State:
    """Return what etcd would know."""
    alice, bob = user(ALICE, *MEMBERS), user(BOB, "n1", "n2")
    jobs = job(1, alice, "n1", "n2"), job(2, bob, "n1", "n2")
    return State(
        {name: Node(name, nodes.address(name)) for name in MEMBERS},
        {each.uid: each for each in (alice, bob)},
        {each.id: each for each in jobs},
        {(ALICE, "n3"): Lease(ALICE, "n3", 0)},
    )


@dataclass
class PodNetworks:
    """The whole world of a test; with a range of IPv6, pods have it."""

    nodes: Nodes
    state: State
    range6: IPv6Network | None = None
    kernels: dict[str, Kernel] = field(default_factory=dict)
    pods: dict[tuple[str, int], Namespace] = field(default_factory=dict)

    @classmethod
    def of(cls, stack: ExitStack, range6: IPv6Network | None = None, *more: Job) -> PodNetworks:
        nodes = Nodes.of(stack, *MEMBERS)
        known = state(nodes)
        world = cls(nodes, replace(known, jobs={**known.jobs, **{each.id: each for each in more}}), range6)
        for name in MEMBERS:
            world.kernels[name] = nodes.kernel(name)
            stack.callback(world.kernels[name].close)
            for which in ("iptables", "ip6tables"):
                sysctl(nodes.places[name], f"bridge/bridge-nf-call-{which}", "1" if name == "n1" else "0")
            world.make(name)
        return world

    def plan(self, node: str) -> NodePlan:
        """Return what a node should have."""
        return plan.desired(self.state, node, self.beginning)

    @property
    def beginning(self) -> IPv6Network | None:
        """What IPv6 addresses begin with."""
        return prefix(self.range6) if self.range6 else None

    def six(self, address: IPv4Address) -> IPv6Address:
        """Return the IPv6 address that goes with one."""
        assert self.beginning
        return beside(self.beginning, address)

    def make(self, node: str) -> None:
        """Make a node's legs and pods."""
        place, kernel, wanted = self.nodes.places[node], self.kernels[node], self.plan(node)
        for leg in wanted.legs.values():
            place.do(kernel.add_leg, leg)
        for pod in wanted.pods.values():
            place.do(kernel.add_pod, pod)
            self.pods[node, pod.job] = self.nodes.pod(node, pod.job)

    @classmethod
    def served(cls, stack: ExitStack, filtered: bool, range6: IPv6Network | None = None, *more: Job) -> PodNetworks:
        """Return a world with servers everywhere, where packets go wherever they can or where the filter lets them."""
        world = cls.of(stack, range6, *more)
        places = [*world.pods.values(), *world.nodes.places.values(), world.with_outside()]
        for place in places:
            for kind in (TCP, UDP):
                for address in ("", *(["::"] if range6 else [])):
                    stack.enter_context(place.serve(address, SERVED, kind))
        if filtered:
            for name in MEMBERS:
                world.filter(name)
        return world

    def filter(self, node: str, settings: rules.Settings = SETTINGS, subordinate: Iterable[Range] = ()) -> None:
        """Put the packet filter in force on a node."""
        settings = replace(settings, ipv6=self.range6)
        wanted = rules.elements(self.plan(node), self.state, node, settings)
        self.nodes.places[node].do(nftables.apply, rules.base(settings, subordinate) + rules.change({}, wanted))

    def leg(self, node: str, uid: int) -> IPv4Address:
        """Return the address of a user's leg."""
        return self.state.users[uid].legs[node]

    def pod_address(self, node: str, number: int) -> IPv4Address:
        """Return the address of a pod."""
        address = self.state.jobs[number].on(node)
        assert address
        return address

    def with_outside(self) -> Namespace:
        """Add the machine outside; members forward, and what they have no other route for goes there."""
        outside = self.with_outside_of(MEMBERS)
        outside.ip(f"route add {PODS} via {self.nodes.address('n1')}")
        return outside

    def with_outside_of(self, members: Iterable[str]) -> Namespace:
        """Do the same for some members; it knows no way to pods."""
        outside = self.nodes.add("outside")
        for address in (OPEN, DENIED, ALICES, METADATA):
            outside.ip(f"addr add {address}/32 dev lo")
        for name in members:
            sysctl(self.nodes.places[name], "ipv4/ip_forward", "1")
            self.nodes.places[name].ip(f"route add default via {self.nodes.address('outside')}")
        return outside


def sysctl(place: Namespace, name: str, value: str) -> None:
    """Set a kernel parameter of a place; those of modules that are not loaded are left."""
    with suppress(FileNotFoundError):
        place.do(Path(NET, name).write_text, value)
