"""What an administrator's plugins answered, read as if it were anybody's: where a pod is, and how it reaches its node.

An answer names addresses and interfaces, and the packet filter is written by them. So an address must be of the
network's range, and the interfaces those that the kernel has and that lead there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from isthmus.clients.cni.plugins import AnswerError, CniError, Result
from isthmus.clients.netlink.observe import Seen
from isthmus.model.networks import cni

_ITEMS_MAX = 64


@dataclass(frozen=True, slots=True)
class Expected:
    """What a site says of its network.

    Attributes:
        range: all addresses of pods.
        interface: by which a node's pods reach it, or all that begin with what is before a `*`.
        gateway: the node's own address for its pods where answers name none.
    """

    range: IPv4Network
    interface: str
    gateway: IPv4Address | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod is.

    Attributes:
        address: the pod's.
        gateway: an address of the node's, for DNS and PMIx.
        end: the node's interface that the pod's packets arrive by.
        leg: the node's interface that has `gateway`.
    """

    address: IPv4Address
    gateway: IPv4Address
    end: str
    leg: str


def place(result: Result, expected: Expected, seen: Seen) -> Place:
    """Return where a pod is.

    Args:
        result: what the plugins answered.
        expected: what the site says.
        seen: the node's own network namespace.

    Raises:
        CniError: the answer is none, contradicts the kernel, or leaves out what jobs need.
    """
    address, given = _address(result, expected.range)
    gateway = given or expected.gateway
    if gateway is None:
        raise CniError(
            f"the plugins gave {address} no gateway; set network_cni_gateway to an address that each node has for pods"
        )
    end = _end(result, address, expected, seen)
    legs = [link.name for link in seen.links.values() if gateway in seen.addresses.get(link.index, [])]
    if not legs:
        raise CniError(
            f"{gateway}, the gateway of pods, is no address of this node, where they have DNS; let the plugins give the"
            " node one (isDefaultGateway of bridge), or set network_cni_gateway"
        )
    return Place(address, gateway, end, end if end in legs else sorted(legs)[0])


def _address(result: Result, range: IPv4Network) -> tuple[IPv4Address, IPv4Address | None]:
    ips = result.raw.get("ips", [])
    if not isinstance(ips, list) or len(ips) > _ITEMS_MAX:
        raise AnswerError(f"the plugins' ips are no list of up to {_ITEMS_MAX}: {json.dumps(ips)[:200]}")
    found = [(interface.ip, gateway) for interface, gateway in result.addresses]
    if len(found) != 1:
        raise CniError(f"the plugins gave {len(found)} IPv4 addresses; a pod has one, so have one range in the list")
    address, gateway = found[0]
    if address not in range or address in (range.network_address, range.broadcast_address):
        raise CniError(f"the plugins gave {address}, which is no address of network_cni_range {range}; make both agree")
    if address == gateway:
        raise CniError(f"the plugins gave {address} to the pod and to the node; correct the list's ranges")
    return address, gateway


def _end(result: Result, address: IPv4Address, expected: Expected, seen: Seen) -> str:
    by_index = {link.index: link.name for link in seen.links.values()}
    ways = [
        (route.to.prefixlen, by_index[index])
        for index, routes in seen.routes.items()
        for route in routes
        if address in route.to and route.to.prefixlen and index in by_index
    ]
    nearest = [max(ways)[1]] if ways else []
    for name in (*nearest, *_on_the_node(result)):
        # It becomes text of the packet filter, and the kernel's names may hold quotes.
        if name in seen.links and cni.is_interface(name) and cni.matches(expected.interface, name):
            return name
    leads = f"{nearest[0]} does" if nearest else "none does"
    raise CniError(
        f"no interface {expected.interface} leads to the pod's address {address}, {leads}; set network_cni_interface to"
        " the one that the plugins make"
    )


def _on_the_node(result: Result) -> Iterator[str]:
    """Yield the names of interfaces that the answer says are the node's."""
    interfaces = result.raw.get("interfaces", [])
    for each in interfaces[:_ITEMS_MAX] if isinstance(interfaces, list) else ():
        if isinstance(each, dict) and not each.get("sandbox") and isinstance(each.get("name"), str):
            yield each["name"]
