"""What the packet filter has more where there are login pods; `node.rules` puts it among the rest.

Slurm's daemons on members reach a pod at its host's address and the pod's own ports, and there only root, Slurm's user
and the pod's owner do: each member asks its own processes. Pods on members reach no ports of hosts but those that are
offered, and others than members none of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from isthmus.model.network import Job, State
from isthmus.network.logins.numbers import Logins, logins

_FLAGS = "(fin | syn | rst | ack)"


def sets() -> dict[str, str]:
    """Return the declarations of the sets, and of the map `login_ways`."""
    return {
        "login_pods": "type ipv4_addr",
        "login_ways": "type inet_service : ipv4_addr; flags interval",
        "login_ports": "type ipv4_addr . inet_service; flags interval",
        "login_owners": "type ipv4_addr . inet_service . uid; flags interval",
    }


def chains(settings: Logins, admins: Iterable[int]) -> dict[str, list[str]]:
    """Return the chains of their own."""
    trusted = ", ".join(str(uid) for uid in sorted({0, settings.slurm_user, *admins}))
    return {
        "login_in": [
            "type nat hook prerouting priority dstnat; policy accept",
            "ip saddr @peers fib daddr type local dnat ip to tcp dport map @login_ways",
        ],
        "login_output": [
            "type filter hook output priority filter + 1; policy accept",
            "ip daddr . tcp dport @login_ports goto to_logins",
        ],
        "to_logins": [
            f'meta skuid {{ {trusted} }} accept comment "root, Slurm, and network_admin_users"',
            'ip daddr . tcp dport . meta skuid @login_owners accept comment "whose login pod it is"',
            f"tcp flags & {_FLAGS} == syn reject with icmp type admin-prohibited",
            "ct state established accept",
            "drop",
        ],
    }


def to_pods(settings: Logins) -> list[str]:
    """Return what else host processes may: slurmctld on the host of the pod itself."""
    ports = f"{settings.first}-{settings.last}"
    return [
        f'meta skuid {settings.slurm_user} ip daddr @login_pods tcp dport {ports} accept comment "Slurm calls srun"'
    ]


def from_pods() -> list[str]:
    """Return the way of what srun answers."""
    return ["ip saddr @login_pods ct direction reply ct status dnat accept"]


def forward(legs: str) -> list[str]:
    """Return the way of Slurm's calls; `legs` matches the interfaces of legs."""
    return [f'oifname "{legs}" ip saddr @peers ct status dnat accept']


def host_services(settings: Logins) -> list[str]:
    """Return what login pods reach on hosts and others do not."""
    ports = ", ".join(map(str, settings.host_ports))
    return [f'ip saddr @login_pods tcp dport {{ {ports} }} accept comment "network_login_host_ports"'] if ports else []


def elements(
    state: State, node: str, settings: Logins, recall: Callable[..., Any] = lambda key, source, make, of: make(of)
) -> dict[str, frozenset[str]]:
    """Return what each set should hold on a node; `recall` as that of Memory."""
    known = [
        (job.nodes == (node,), recall(("login", job.id), (job, host), _of_pod, (job, host, settings.ports(job.id))))
        for job in logins(state)
        if job.addresses and job.nodes[0] in state.nodes and (host := state.nodes[job.nodes[0]].address)
    ]
    return {
        "login_pods": frozenset(each.address for is_here, each in known if is_here),
        "login_ways": frozenset(each.way for is_here, each in known if is_here),
        "login_ports": frozenset(each.ports for _, each in known),
        "login_owners": frozenset(each.owner for _, each in known),
    }


@dataclass(frozen=True, slots=True)
class _OfPod:
    """Elements of one login pod; address and way on its own host alone."""

    address: str
    way: str
    ports: str
    owner: str


def _of_pod(pod: tuple[Job, IPv4Address, tuple[int, int]]) -> _OfPod:
    job, host, (first, last) = pod
    address, ports = str(job.addresses[0]), f"{host} . {first}-{last}"
    return _OfPod(address, f"{first}-{last} : {address}", ports, f"{ports} . {job.uid}")
