"""Flannel's part of the node's packet filter: one network for all users, otherwise the rules of private networks.

The same questions are asked as in `rules`, in chains beside those. What differs: any host process may talk to any pod,
and a pod is known by its address, for the bridge is everybody's. Nothing but the members' own packets comes to pods by
the VXLAN device; with host-gw they come as they are, and a network that others share can forge them. To members pods
speak by their own address: a srun inside a pod is answered by way of Flannel's network, which a node's own address, put
in by masquerading, would lead to the wrong place. All other hosts see the node's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Network
from typing import ClassVar

from isthmus.model.flannel import BRIDGE, PORT, VXLAN
from isthmus.model.network import Driver, State
from isthmus.model.node_network import LEG, SharedPod
from isthmus.network.node.nat import masquerade


class Backend(StrEnum):
    """How packets come to other nodes; the values Flannel knows them by."""

    VXLAN = "vxlan"
    HOST_GW = "host-gw"


@dataclass(frozen=True, slots=True)
class Flannel:
    """What the admin decides; the same on all nodes.

    Attributes:
        range: all addresses of this network's pods, bridges and VXLAN devices.
        backend: how packets come to other nodes.
    """

    range: IPv4Network
    backend: Backend = Backend.VXLAN
    driver: ClassVar[Driver] = Driver.FLANNEL
    bridge: ClassVar[str] = BRIDGE

    def user_set(self, uid: int) -> str:
        """See SharedNetwork."""
        return f"{self.driver}_user_{uid}"

    def own_legs(self, pods: Mapping[int, SharedPod]) -> frozenset[str]:
        """See SharedNetwork."""
        return frozenset(f"{self.bridge} . {pod.gateway}" for pod in pods.values())

    def sets(self) -> dict[str, str]:
        """See SharedNetwork."""
        return {}

    def elements(self, pods: Mapping[int, SharedPod], uids: Iterable[int], state: State) -> dict[str, frozenset[str]]:
        """See SharedNetwork."""
        return {
            self.user_set(uid): frozenset(str(pod.address) for pod in pods.values() if pod.uid == uid) for uid in uids
        }

    def chains(self, private: IPv4Network, outside: list[str]) -> dict[str, list[str]]:
        """See SharedNetwork."""
        return {**_to_hosts(self, private), **_forwarded(self, private, outside)}


def _to_hosts(network: Flannel, private: IPv4Network) -> dict[str, list[str]]:
    ours, way = network.range, _WAYS[network.backend]
    return {
        "flannel_input": [
            "type filter hook input priority filter; policy accept",
            *way.members_only,
            'iifname "lo" accept',
            f"iifname {_BRIDGE} goto from_flannel",
            f"ip saddr {ours} goto from_flannel",
            f"ip daddr {ours} ct state established,related accept",
            f"ip daddr {ours} drop",
        ],
        "from_flannel": [
            *_sane(ours),
            "ct state established,related accept",
            "iifname . ip daddr @legs goto own_leg",
            f"ip daddr {{ {ours}, {private} }} drop",
            "jump host_services",
            "drop",
        ],
    }


def _forwarded(network: Flannel, private: IPv4Network, outside: list[str]) -> dict[str, list[str]]:
    ours, way = network.range, _WAYS[network.backend]
    return {
        "flannel_forward": [
            "type filter hook forward priority filter; policy accept",
            f"iifname {_BRIDGE} oifname {_BRIDGE} accept",
            *way.none_forwarded,
            f"iifname {_BRIDGE} goto from_flannel_pods",
            f"ip daddr {ours} ct state established,related accept",
            *(f"oifname {_BRIDGE} {members} accept" for members in way.members(ours)),
            f"ip daddr {ours} drop",
            f"ip saddr {ours} drop",
            f"oifname {_BRIDGE} drop",
        ],
        "from_flannel_pods": [
            *_sane(ours),
            *way.to_others(ours),
            f'oifname "{LEG}*" drop',
            f"ip daddr {private} drop",
            *outside,
        ],
        "flannel_postrouting": [
            "type nat hook postrouting priority srcnat; policy accept",
            *masquerade(f'ip saddr {ours} ip daddr != {ours} ip daddr != @peers oifname != {{ {_BRIDGE}, "lo" }}'),
        ],
    }


_BRIDGE = f'"{BRIDGE}"'


class _Vxlan:
    members_only = (f"udp dport {PORT} ip saddr != @peers drop",)
    none_forwarded = (f"udp dport {PORT} ip daddr @peers drop",)

    @staticmethod
    def members(ours: IPv4Network) -> tuple[str, ...]:
        return (f'iifname "{VXLAN}" ip saddr {ours}',)

    @staticmethod
    def to_others(ours: IPv4Network) -> tuple[str, ...]:
        return (f'ip daddr {ours} oifname "{VXLAN}" accept', f"ip daddr {ours} drop")


class _HostGateway:
    members_only = none_forwarded = ()

    @staticmethod
    def members(ours: IPv4Network) -> tuple[str, ...]:
        return (f"ip saddr {ours}", "ip saddr @peers")

    @staticmethod
    def to_others(ours: IPv4Network) -> tuple[str, ...]:
        # A member's own processes come by the node's address here, and are answered there.
        return (f"ip daddr {ours} accept", "ip daddr @peers ct direction reply accept")


_WAYS: Mapping[Backend, type[_Vxlan] | type[_HostGateway]] = {Backend.VXLAN: _Vxlan, Backend.HOST_GW: _HostGateway}


def _sane(ours: IPv4Network) -> list[str]:
    return ["meta nfproto ipv6 drop", f"ip saddr != {ours} drop"]
