"""The routed network's part of the node's packet filter.

Any packet here has the addresses of its pods, so users are kept apart by sets: for each pod on the node, the addresses
of all of its user's pods, wherever they are. A pod's own host end says who sends: from it comes its address and no
other. Between nodes nothing says it but the address: who has root on another machine of the segment can forge it.

Members reach pods by their own address, for a srun inside a pod is answered by slurmstepd; there the filter of the
member says who may. To members pods speak by their own address. All other hosts see the node's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import ClassVar

from isthmus.model.network import Driver, State
from isthmus.model.networks.routed import VETH, Plan
from isthmus.model.node_network import LEG, SharedPod
from isthmus.network.node.nat import masquerade

_PODS, _SAME, _OWNED = "routed_pods", "routed_same", "routed_owned"


@dataclass(frozen=True, slots=True)
class Routed:
    """What the admin decides; the same on all nodes.

    Attributes:
        plan: which node has which addresses.
    """

    plan: Plan
    driver: ClassVar[Driver] = Driver.ROUTED
    bridge: ClassVar[str] = f"{VETH}*"

    @property
    def range(self) -> IPv4Network:
        """See SharedNetwork."""
        return self.plan.range

    def user_set(self, uid: int) -> str:
        """See SharedNetwork."""
        return f"{self.driver}_user_{uid}"

    def sets(self) -> dict[str, str]:
        """See SharedNetwork."""
        return {
            _PODS: "type ifname . ipv4_addr",
            _SAME: "type ifname . ipv4_addr",
            _OWNED: "type uid . ipv4_addr",
        }

    def own_legs(self, pods: Mapping[int, SharedPod]) -> frozenset[str]:
        """See SharedNetwork."""
        return frozenset(f"{VETH}{job} . {pod.gateway}" for job, pod in pods.items())

    def elements(self, pods: Mapping[int, SharedPod], uids: Iterable[int], state: State) -> dict[str, frozenset[str]]:
        """See SharedNetwork."""
        theirs: dict[int, set[str]] = {}
        for (job, _), each in state.attachments.items():
            if job in state.jobs and state.jobs[job].driver is Driver.ROUTED:
                theirs.setdefault(state.jobs[job].uid, set()).add(str(each.address))
        return {
            _PODS: frozenset(f"{VETH}{job} . {pod.address}" for job, pod in pods.items()),
            _SAME: frozenset(f"{VETH}{job} . {to}" for job, pod in pods.items() for to in theirs.get(pod.uid, ())),
            _OWNED: frozenset(f"{pod.uid} . {to}" for pod in pods.values() for to in theirs.get(pod.uid, ())),
            **{
                self.user_set(uid): frozenset(str(pod.address) for pod in pods.values() if pod.uid == uid)
                for uid in uids
            },
        }

    def chains(self, private: IPv4Network, outside: list[str]) -> dict[str, list[str]]:
        """See SharedNetwork."""
        return {**_to_hosts(self.range, private), **_forwarded(self.range, private, outside), **_from_hosts(self.range)}


def _to_hosts(ours: IPv4Network, private: IPv4Network) -> dict[str, list[str]]:
    return {
        "routed_input": [
            "type filter hook input priority filter; policy accept",
            'iifname "lo" accept',
            f"iifname {_ENDS} goto from_routed",
            f"ip saddr {ours} goto from_routed_elsewhere",
            f"ip daddr {ours} ct state established,related accept",
            f"ip daddr {ours} drop",
        ],
        "from_routed": [
            *_SANE,
            "ct state established,related accept",
            "iifname . ip daddr @legs goto own_leg",
            f"ip daddr {{ {ours}, {private} }} drop",
            "jump host_services",
            "drop",
        ],
        "from_routed_elsewhere": [
            f"ip daddr {ours} drop",
            "ct state established,related accept",
            "jump host_services",
            "drop",
        ],
    }


def _forwarded(ours: IPv4Network, private: IPv4Network, outside: list[str]) -> dict[str, list[str]]:
    return {
        "routed_forward": [
            "type filter hook forward priority filter; policy accept",
            f"iifname {_ENDS} goto from_routed_pods",
            f"oifname {_ENDS} oifname . ip saddr @{_SAME} accept",
            f"oifname {_ENDS} ip saddr @peers accept",
            f"oifname {_ENDS} ct state established,related accept",
            f"oifname {_ENDS} drop",
            f"ip daddr {ours} drop",
            f"ip saddr {ours} drop",
        ],
        "from_routed_pods": [
            *_SANE,
            f"iifname . ip daddr @{_SAME} accept",
            f"ip daddr {ours} drop",
            f"oifname {_ENDS} drop",
            f'oifname "{LEG}*" drop',
            f"ip daddr {private} drop",
            "ip daddr @peers ct direction reply accept",
            *outside,
        ],
        "routed_postrouting": [
            "type nat hook postrouting priority srcnat; policy accept",
            *masquerade(f'ip saddr {ours} ip daddr != {ours} ip daddr != @peers oifname != {_ENDS} oifname != "lo"'),
        ],
    }


def _from_hosts(ours: IPv4Network) -> dict[str, list[str]]:
    return {
        "routed_output": [
            "type filter hook output priority filter; policy accept",
            f"ip daddr {ours} goto to_routed",
            f"oifname {_ENDS} goto to_routed",
        ],
        "to_routed": [
            "meta nfproto ipv6 drop",
            f"meta skuid . ip daddr @{_OWNED} accept",
            f"meta skuid != 0 ip saddr {ours} tcp sport != 53 tcp flags & (fin | syn | rst | ack) == (syn | ack) drop",
            "goto to_pods",
        ],
    }


_ENDS = f'"{VETH}*"'
_SANE = ["meta nfproto ipv6 drop", f"iifname . ip saddr != @{_PODS} drop"]
