"""Pods of the routed network in a node's kernel, and the routes to those of other nodes.

For each job:
    /run/netns/isthmus-routed-<job>   eth0 with address/32, the node's gateway address on the link and as way out
    veth   ir<job>   its host end: the gateway's address, the route to the pod

A pod is whole when its host end has an alias, which is written last: it says whose it is. Nothing is asked by ARP.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from isthmus.clients.netlink import links, namespaces, observe, tables
from isthmus.clients.netlink.observe import Seen
from isthmus.clients.netlink.wire import Wire, failure
from isthmus.model.network import Driver
from isthmus.model.networks.routed import VETH
from isthmus.model.node_network import POD_INTERFACE, SharedPod, mac, shared_prefix

_PREFIX = shared_prefix(Driver.ROUTED)
_OUR_LINK = re.compile(rf"{VETH}(\d+)")
_OUR_NAMESPACE = re.compile(rf"{_PREFIX}(\d+)")
_ANY = IPv4Network("0.0.0.0/0")
_ENODEV = 19
_ON_END = {"ipv6/conf/{}/disable_ipv6": "1", "ipv4/conf/{}/rp_filter": "1"}


@dataclass(frozen=True, slots=True)
class Found:
    """What a node has.

    Attributes:
        pods: whole ones, by job id.
        broken: jobs of which only a part is there.
        routes: subnets of other nodes -> the node.
    """

    pods: Mapping[int, SharedPod]
    broken: frozenset[int]
    routes: Mapping[IPv4Network, IPv4Address]


class RoutedKernel:
    """The kernel of the network namespace of the thread that makes this. Every method raises NetlinkError.

    Args:
        range: all addresses of pods.
        folder: where namespaces have their names.
    """

    def __init__(self, range: IPv4Network, folder: Path = namespaces.RUN) -> None:
        self._range, self._folder = range, folder
        self._wire = Wire()

    def close(self) -> None:
        """Let go of the kernel; what was made stays."""
        self._wire.close()

    def observe(self) -> Found:
        """Return what exists."""
        seen = observe.look(self._wire)
        named = {int(found[1]) for name in seen.links if (found := _OUR_LINK.fullmatch(name))}
        spaces = {int(found[1]) for name in namespaces.names(self._folder) if (found := _OUR_NAMESPACE.fullmatch(name))}
        pods = {job: pod for job in named & spaces if (pod := self._pod(seen, job))}
        routes = {
            route.to: route.gateway
            for several in seen.routes.values()
            for route in several
            if route.gateway and route.to.subnet_of(self._range)
        }
        return Found(pods, frozenset((named | spaces) - pods.keys()), routes)

    def _pod(self, seen: Seen, job: int) -> SharedPod | None:
        end = seen.up(f"{VETH}{job}")
        if end is None or not namespaces.exists(self._path(job)):
            return None
        gateways = seen.addresses.get(end.index, [])
        addresses = [route.to.network_address for route in seen.routes.get(end.index, []) if route.to.prefixlen == 32]
        with suppress(ValueError, KeyError, TypeError):
            uid = int(json.loads(end.alias)["uid"])
            if len(gateways) == len(addresses) == 1:
                return SharedPod(Driver.ROUTED, job, uid, addresses[0], gateways[0])
        return None

    def add(self, pod: SharedPod, mtu: int) -> None:
        """Make a pod; what is left of one is removed first."""
        self.remove(pod.job)
        name = f"{VETH}{pod.job}"
        with closing(namespaces.create(self._path(pod.job), namespaces.POD_SYSCTLS)) as inside:
            with open(self._path(pod.job), "rb") as file:
                peer = [
                    ("IFLA_IFNAME", POD_INTERFACE),
                    ("IFLA_ADDRESS", mac(pod.address)),
                    ("IFLA_MTU", mtu),
                    ("IFLA_NET_NS_FD", file.fileno()),
                ]
                self._wire.send(links.veth(name, mac(pod.gateway), mtu, 0, peer))
            for sysctl, value in _ON_END.items():
                namespaces.sysctl(sysctl.format(name), value)
            end, eth = self._index(self._wire, name), self._index(inside, POD_INTERFACE)
            self._wire.send(
                tables.add_address(pod.gateway, end, name),
                links.up(end, name),
                tables.add_route(IPv4Network(pod.address), end, source=pod.gateway),
                tables.add_neighbour(pod.address, end),
            )
            inside.send(
                links.up(self._index(inside, "lo"), "lo"),
                tables.add_address(pod.address, eth, POD_INTERFACE),
                links.up(eth, POD_INTERFACE),
                tables.add_route(IPv4Network(pod.gateway), eth),
                tables.add_route(_ANY, eth, gateway=pod.gateway),
                tables.add_neighbour(pod.gateway, eth),
            )
        self._wire.send(links.change_link(name, {"IFLA_IFALIAS": observe.alias(pod.uid)}))

    def remove(self, job: int) -> None:
        """Remove a pod; processes still in its namespace are cut off. One that is gone is fine."""
        self._wire.send(links.delete_link(f"{VETH}{job}"))
        namespaces.remove(self._path(job))

    def route(
        self, had: Mapping[IPv4Network, IPv4Address], want: Mapping[IPv4Network, IPv4Address], by: IPv4Address
    ) -> None:
        """Send packets for other nodes' pods to these nodes.

        Args:
            had: subnet -> node, as it is.
            want: as it should be.
            by: this node's own address; its interface leads to the others.
        """
        changed = {to: node for to, node in want.items() if had.get(to) != node}
        gone = had.keys() - want.keys()
        if not changed and not gone:
            return
        seen = observe.look(self._wire)
        index = next((index for index, addresses in seen.addresses.items() if by in addresses), 0)
        if not index:
            raise failure(f"find the interface with the address {by}", _ENODEV)
        self._wire.send(
            *(tables.delete_route(to, index, had[to]) for to in gone),
            *(tables.add_route(to, index, gateway=node) for to, node in changed.items()),
        )

    def _path(self, job: int) -> Path:
        return self._folder / f"{_PREFIX}{job}"

    @staticmethod
    def _index(wire: Wire, name: str) -> int:
        found = observe.link(wire, name)
        if not found:
            raise failure(f"find interface {name}", _ENODEV)
        return found.index
