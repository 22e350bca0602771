"""The part of the node's packet filter for the site's own network: one network for all users.

What connects nodes is the plugins' business, so packets of other nodes' pods may come by any interface, and are known
by their address alone. What comes from a pod's end has the address of a pod that is there. A bridge passes frames
between its pods itself, so nothing here keeps users apart.

To members pods speak by their own address: a srun inside a pod is answered by way of the pods' network. All other hosts
see the node's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import ClassVar

from isthmus.model.network import Driver, State
from isthmus.model.node_network import LEG, SharedPod
from isthmus.network.node.nat import masquerade

_PODS = "cni_pods"


@dataclass(frozen=True, slots=True)
class Cni:
    """What the admin decides; the same on all nodes.

    Attributes:
        range: all addresses of pods, and of the nodes' ends of them.
        bridge: the interface by which pods reach their node; all that begin with the rest where it ends with *.
    """

    range: IPv4Network
    bridge: str
    driver: ClassVar[Driver] = Driver.CNI

    def user_set(self, uid: int) -> str:
        """See SharedNetwork."""
        return f"{self.driver}_user_{uid}"

    def sets(self) -> dict[str, str]:
        """See SharedNetwork."""
        return {_PODS: "type ifname . ipv4_addr"}

    def own_legs(self, pods: Mapping[int, SharedPod]) -> frozenset[str]:
        """See SharedNetwork."""
        return frozenset(f'"{pod.end}" . {pod.gateway}' for pod in pods.values())

    def elements(self, pods: Mapping[int, SharedPod], uids: Iterable[int], state: State) -> dict[str, frozenset[str]]:
        """See SharedNetwork."""
        return {
            _PODS: frozenset(f'"{pod.end}" . {pod.address}' for pod in pods.values()),
            **{
                self.user_set(uid): frozenset(str(pod.address) for pod in pods.values() if pod.uid == uid)
                for uid in uids
            },
        }

    def chains(self, private: IPv4Network, outside: list[str]) -> dict[str, list[str]]:
        """See SharedNetwork."""
        return {**self._to_hosts(private), **self._forwarded(private, outside)}

    def _to_hosts(self, private: IPv4Network) -> dict[str, list[str]]:
        ours, ends = self.range, f'"{self.bridge}"'
        return {
            "cni_input": [
                "type filter hook input priority filter; policy accept",
                'iifname "lo" accept',
                f"iifname {ends} goto from_cni",
                f"ip saddr {ours} goto from_cni_elsewhere",
                f"ip daddr {ours} ct state established,related accept",
                f"ip daddr {ours} drop",
            ],
            "from_cni": [
                *_SANE,
                "ct state established,related accept",
                "iifname . ip daddr @legs goto own_leg",
                f"ip daddr {{ {ours}, {private} }} drop",
                "jump host_services",
                "drop",
            ],
            "from_cni_elsewhere": [
                "ct state established,related accept",
                f"ip daddr {{ {ours}, {private} }} drop",
                "jump host_services",
                "drop",
            ],
        }

    def _forwarded(self, private: IPv4Network, outside: list[str]) -> dict[str, list[str]]:
        ours, ends = self.range, f'"{self.bridge}"'
        return {
            "cni_forward": [
                "type filter hook forward priority filter; policy accept",
                f"iifname {ends} goto from_cni_pods",
                f"oifname {ends} ip saddr {ours} accept",
                f"oifname {ends} ip saddr @peers accept",
                f"oifname {ends} ct state established,related accept",
                f"oifname {ends} drop",
                f"ip daddr {ours} drop",
                f"ip saddr {ours} drop",
            ],
            "from_cni_pods": [
                *_SANE,
                f"ip daddr {ours} accept",
                f"oifname {ends} drop",
                f'oifname "{LEG}*" drop',
                f"ip daddr {private} drop",
                "ip daddr @peers ct direction reply accept",
                *outside,
            ],
            "cni_postrouting": [
                "type nat hook postrouting priority srcnat; policy accept",
                *masquerade(f'ip saddr {ours} ip daddr != {ours} ip daddr != @peers oifname != {ends} oifname != "lo"'),
            ],
        }


_SANE = ["meta nfproto ipv6 drop", f"iifname . ip saddr != @{_PODS} drop"]
