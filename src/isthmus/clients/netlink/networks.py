"""Creates, changes, removes and lists the legs and pods of pod networks in a node's kernel.

For each user with something on the node (the leg):
    bridge il<vni>      the host's own address/32; a route to each of the user's blocks
    VXLAN  ix<vni>      on the bridge; a forwarding entry per remote pod and leg, one for everybody's frames per node
For each job (the pod):
    /run/netns/isthmus-<job>   eth0 with address/32, routes to the blocks, the leg as gateway, the other nodes' legs
    veth   iv<job>      its host end, on the bridge

Nothing is learned and nearly nothing asked: MACs follow from addresses, so the bridge has an entry for each pod and
leg, local or remote, and answers ARP for the remote ones itself. Else each question would go to every node of the user
(one copy each: there is no multicast below), and so would frames to a MAC that a bridge has forgotten.

Where there is IPv6, leg and pod have the address that goes with their IPv4 one, with routes and neighbour entries as
for that, but without a default route. No interface has an address of the link's own (fe80::), none listens to routers.

Each call may be repeated, and may be cut off at any point and repeated by another process: what exists and is whole is
kept, what is half made (without alias, see netlink_observe) is removed and made again. One `Kernel` is for one thread
at a time and works in the network namespace of the thread that made it; all calls come from that namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from pathlib import Path

from isthmus.clients.netlink import links, namespaces, observe, tables
from isthmus.clients.netlink.wire import NetlinkError, NotThereError, Request, Wire, failure
from isthmus.model.networks.ipv6 import beginning, beside, block_beside
from isthmus.model.node_network import LEG, NAMESPACE, POD_INTERFACE, VETH, VXLAN, Leg, NodePlan, Pod, mac

__all__ = ["Kernel", "NetlinkError", "NotThereError", "Underlay"]

_ENODEV = 19
_ANY = IPv4Network("0.0.0.0/0")
# `ip link` shows the MAC of a device's own end; that of pod and leg, one bit away, is the address of the other end.
_PORT_MAC_PREFIX = "0a:59"
_ON_PORT = {"ipv6/conf/{}/disable_ipv6": "1"}
# The host answers ARP on a leg for the leg's address only, and takes no packet whose way back is another interface.
_ON_LEG = _ON_PORT | {"ipv4/conf/{}/arp_ignore": "1", "ipv4/conf/{}/rp_filter": "1"}


@dataclass(frozen=True, slots=True)
class Underlay:
    """The interface that VXLAN packets leave by, and its MTU in bytes."""

    interface: str
    mtu: int


class Kernel:
    """The kernel of this node.

    Args:
        folder: where namespaces have their names.
    """

    def __init__(self, folder: Path = namespaces.RUN) -> None:
        self._folder = folder
        self._wire = Wire()

    def close(self) -> None:
        """Let go of the kernel; what was made stays."""
        self._wire.close()

    def observe(self) -> NodePlan:
        """Return what of ours exists; blocks are in ascending order, as the kernel keeps none."""
        return observe.plan(self._wire, self._folder)

    def underlay(self, address: IPv4Address) -> Underlay:
        """Return which interface holds an address.

        Raises:
            NotThereError: none does.
        """
        seen = observe.look(self._wire)
        for link in seen.links.values():
            if address in seen.addresses.get(link.index, []):
                return Underlay(link.name, link.mtu)
        raise failure(f"find the interface with the address {address}", _ENODEV)

    def add_leg(self, leg: Leg) -> None:
        """Make a leg, or make the one that is there like it."""
        if observe.link(self._wire, leg.name):
            have = observe.leg(observe.look(self._wire, forwards=True, ipv6=True), leg.vni)
            if have and _same_leg(have, leg):
                return self.change_leg(have, leg)
        self.remove_leg(leg.vni)
        port_mac = _port_mac(leg.address)
        # An MTU that a bridge is born with follows its ports' later; one it is given afterwards stays.
        mtu = links.change_link(leg.name, {"IFLA_MTU": leg.mtu})
        self._wire.send(links.bridge(leg.name, mac(leg.address)), mtu)
        bridge = self._index(leg.name)
        self._wire.send(links.vxlan(leg.vxlan, leg.vni, leg.underlay, port_mac, leg.mtu, bridge))
        _configure(_ON_LEG, leg.name)
        _configure(_ON_PORT, leg.vxlan)
        self._wire.send(
            links.port(leg.vxlan, learning=0, unicast_flood=0, neigh_suppress=1),
            tables.add_address(leg.address, bridge, leg.name),
            links.change_link(leg.vxlan, {}, up=True),
            links.up(bridge, leg.name),
        )
        self._change_leg(replace(leg, blocks=(), forwards=frozenset(), ipv6=None), leg)
        self._wire.send(links.change_link(leg.name, {"IFLA_IFALIAS": observe.alias(leg.uid)}))

    def change_leg(self, have: Leg, want: Leg) -> None:
        """Change blocks, forwards, MTU and IPv6 of a leg that is there.

        Raises:
            ValueError: they differ in more, so the leg must be removed and added.
        """
        if not _same_leg(have, want):
            raise ValueError(f"leg {want.name} cannot become another user's or have another address")
        self._change_leg(have, want)

    def _change_leg(self, have: Leg, want: Leg) -> None:
        bridge, vxlan = self._index(want.name), self._index(want.vxlan)
        turned = have.ipv6 != want.ipv6
        if have.mtu != want.mtu:
            self._wire.send(*(links.change_link(name, {"IFLA_MTU": want.mtu}) for name in (want.vxlan, want.name)))
        if turned or have.mtu != want.mtu:
            # An MTU too small for IPv6 had the kernel forget settings.
            _turn(want.name, want.ipv6 is not None, afresh=turned)
        # What was there of IPv6 is gone if it was turned off, or another.
        known = None if turned else have.ipv6
        requests: list[Request] = []
        for block in set(have.blocks) - set(want.blocks):
            requests += [tables.delete_route(each, bridge) for each in _both(block, known)]
        for block in set(want.blocks) - set(have.blocks):
            requests.append(tables.add_route(block, bridge, source=want.address))
        requests += _leg_ipv6(replace(have, ipv6=known), want, bridge)
        # Removed first: a pod that moved to another node has the same MAC there.
        for forward in have.forwards - want.forwards:
            requests += tables.delete_forward(forward, bridge, vxlan, known)
        for forward in want.forwards - have.forwards:
            requests += tables.add_forward(forward, bridge, vxlan, want.ipv6)
        self._wire.send(*requests)

    def remove_leg(self, vni: int) -> None:
        """Remove a leg with all that hangs on it; its pods, if there still are any, lose their bridge."""
        self._wire.send(links.delete_link(f"{VXLAN}{vni}"), links.delete_link(f"{LEG}{vni}"))

    def add_pod(self, pod: Pod) -> None:
        """Make a pod's namespace and join it to its leg, or make the one that is there like it.

        Raises:
            NotThereError: the leg does not exist.
        """
        if observe.link(self._wire, pod.veth):
            have = observe.pod(observe.look(self._wire), pod.job, self._folder)
            if have and _same_pod(have, pod):
                return self.change_pod(have, pod)
        bridge = self._index(f"{LEG}{pod.vni}")
        self.remove_pod(pod.job)
        sysctls = namespaces.pod_sysctls(POD_INTERFACE, ipv6=pod.ipv6 is not None)
        with closing(namespaces.create(self._folder / pod.namespace, sysctls)) as inside:
            self._join(pod, bridge)
            eth = _index(inside, POD_INTERFACE)
            inside.send(
                links.up(_index(inside, "lo"), "lo"),
                tables.add_address(pod.address, eth, POD_INTERFACE),
                links.up(eth, POD_INTERFACE),
                *_inside_changes(_bare(pod), pod, eth),
            )
        self._wire.send(links.change_link(pod.veth, {"IFLA_IFALIAS": observe.alias(pod.uid)}))

    def _join(self, pod: Pod, bridge: int) -> None:
        """Make the pair of interfaces, its host end on the bridge and up."""
        namespace = str(self._folder / pod.namespace)
        with open(namespace, "rb") as file:
            peer = [
                ("IFLA_IFNAME", POD_INTERFACE),
                ("IFLA_ADDRESS", mac(pod.address)),
                ("IFLA_MTU", pod.mtu),
                ("IFLA_NET_NS_FD", file.fileno()),
            ]
            self._wire.send(links.veth(pod.veth, _port_mac(pod.address), pod.mtu, bridge, peer))
        _configure(_ON_PORT, pod.veth)
        self._wire.send(*self._attached(pod, bridge))

    def _attached(self, pod: Pod, bridge: int) -> list[Request]:
        """Return the requests that put a pod's host end on a bridge."""
        return [
            links.change_link(pod.veth, {"IFLA_MASTER": bridge}, up=True),
            links.port(pod.veth, learning=0),
            tables.add_port_of(mac(pod.address), self._index(pod.veth)),
            tables.add_neighbour(pod.address, bridge),
            *([tables.add_neighbour(beside(pod.ipv6, pod.address), bridge)] if pod.ipv6 else []),
        ]

    def change_pod(self, have: Pod, want: Pod) -> None:
        """Change leg, gateway, blocks, MTU, peers and IPv6 of a pod that is there.

        Raises:
            ValueError: they differ in more, so the pod must be removed and added.
        """
        if not _same_pod(have, want):
            raise ValueError(f"the pod of job {want.job} cannot become another user's or have another address")
        turned = have.ipv6 != want.ipv6
        if have.vni != want.vni or turned:
            self._wire.send(*self._attached(want, self._index(f"{LEG}{want.vni}")))
        if have.mtu != want.mtu:
            self._wire.send(links.change_link(want.veth, {"IFLA_MTU": want.mtu}))
        with closing(namespaces.enter(self._folder / want.namespace, _turns(want) if turned else ())) as inside:
            inside.send(*_inside_changes(have, want, _index(inside, POD_INTERFACE)))

    def remove_pod(self, job: int) -> None:
        """Remove a pod; processes still in its namespace are cut off."""
        self._forget(job)
        self._wire.send(links.delete_link(f"{VETH}{job}"))
        namespaces.remove(self._folder / f"{NAMESPACE}{job}")

    def remove_broken(self, name: str) -> None:
        """Remove what `observe` found to be half made, by its name.

        Raises:
            ValueError: the name is not one of ours.
        """
        parts = {NAMESPACE: self.remove_pod, VETH: self.remove_pod, LEG: self.remove_leg, VXLAN: self.remove_leg}
        for prefix, remove in parts.items():
            if name.startswith(prefix) and name[len(prefix) :].isdigit():
                return remove(int(name[len(prefix) :]))
        raise ValueError(f"{name} is no name of a leg or pod")

    def _index(self, name: str) -> int:
        return _index(self._wire, name)

    def _forget(self, job: int) -> None:
        """Forget the address of a pod about to be removed; found by its host end's MAC."""
        host = observe.link(self._wire, f"{VETH}{job}")
        if host and host.master and host.hardware.startswith(_PORT_MAC_PREFIX):
            address = IPv4Address(bytes.fromhex(host.hardware.replace(":", ""))[2:])
            legs = self._wire.read(tables.addresses6(host.master), tables.read_address6)
            begin = {beginning(leg[1]) for leg in legs if leg and leg[0] == host.master}
            known: list[tables.Address] = [address, *(beside(each, address) for each in begin)]
            self._wire.send(*(tables.delete_neighbour(each, host.master) for each in known))


def _index(wire: Wire, name: str) -> int:
    found = observe.link(wire, name)
    if not found:
        raise failure(f"find interface {name}", _ENODEV)
    return found.index


def _port_mac(address: IPv4Address) -> str:
    return mac(address).replace("0a:58", _PORT_MAC_PREFIX, 1)


def _configure(sysctls: dict[str, str], interface: str) -> None:
    for name, value in sysctls.items():
        namespaces.sysctl(name.format(interface), value)


def _bare(pod: Pod) -> Pod:
    """Return what there is of a pod that has its address alone."""
    return replace(pod, blocks=(), gateway=IPv4Address(0), peers=frozenset(), ipv6=None)


def _both(block: IPv4Network, ipv6: IPv6Network | None) -> list[IPv4Network | IPv6Network]:
    """Return a block, and the one that goes with it where there is IPv6."""
    return [block, *([block_beside(ipv6, block)] if ipv6 else [])]


def _turn(interface: str, ipv6: bool, afresh: bool) -> None:
    """Turn IPv6 of an interface on or off; first off where what is there is to be forgotten."""
    if afresh or not ipv6:
        _configure(_ON_PORT, interface)
    if ipv6:
        _configure(namespaces.ipv6_sysctls(interface), interface)


def _turns(pod: Pod) -> list[Mapping[str, str]]:
    """Return the settings that turn IPv6 in a pod off, and on again if it is to have some."""
    on = [namespaces.pod_sysctls(POD_INTERFACE, ipv6=True)] if pod.ipv6 else []
    return [namespaces.NO_IPV6, *on]


def _leg_ipv6(have: Leg, want: Leg, bridge: int) -> Iterator[Request]:
    """Yield what a leg lacks of IPv6, but for forwards that are new."""
    if want.ipv6 is None:
        return
    address = beside(want.ipv6, want.address)
    if have.ipv6 is None:
        yield tables.add_address(address, bridge, want.name)
        for forward in want.forwards & have.forwards:
            yield from tables.forward_neighbours(forward, bridge, want.ipv6)
    for block in set(want.blocks) - set(have.blocks if have.ipv6 else ()):
        yield tables.add_route(block_beside(want.ipv6, block), bridge, source=address)


def _pod_ipv6(have: Pod, want: Pod, eth: int) -> Iterator[Request]:
    """Yield what a pod lacks of IPv6; the leg is there to be spoken to, not as a way out."""
    if want.ipv6 is None:
        return
    is_new = have.ipv6 != want.ipv6
    if is_new:
        yield tables.add_address(beside(want.ipv6, want.address), eth, POD_INTERFACE)
    for block in set(want.blocks) - set(() if is_new else have.blocks):
        yield tables.add_route(block_beside(want.ipv6, block), eth)
    if is_new or have.gateway != want.gateway:
        yield tables.add_neighbour(beside(want.ipv6, want.gateway), eth)


def _inside_changes(have: Pod, want: Pod, eth: int) -> list[Request]:
    """Return what to change in a pod's namespace; blocks come before gateways, which are in them."""
    known = have.ipv6 if have.ipv6 == want.ipv6 else None
    requests = [
        tables.delete_route(each, eth) for block in set(have.blocks) - set(want.blocks) for each in _both(block, known)
    ]
    requests += [tables.add_route(block, eth) for block in set(want.blocks) - set(have.blocks)]
    if have.mtu != want.mtu:
        requests.append(links.change_link(POD_INTERFACE, {"IFLA_MTU": want.mtu}))
    requests += _pod_ipv6(have, want, eth)
    if have.gateway != want.gateway:
        requests += [tables.add_route(_ANY, eth, gateway=want.gateway), tables.add_neighbour(want.gateway, eth)]
    for node, leg in have.peers - want.peers:
        requests.append(tables.delete_route(IPv4Network(node), eth, leg))
    for node, leg in want.peers - have.peers:
        requests.append(tables.add_route(IPv4Network(node), eth, gateway=leg))
    return requests


def _same_leg(have: Leg, want: Leg) -> bool:
    return (have.uid, have.address, have.underlay) == (want.uid, want.address, want.underlay)


def _same_pod(have: Pod, want: Pod) -> bool:
    return (have.uid, have.address) == (want.uid, want.address)
