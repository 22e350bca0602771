"""What the packet filter has more where there are login pods; `node.rules` puts it among the rest.

Slurm's daemons on members reach a pod at its host's address and the pod's own ports, and there only root, Slurm's user
and the pod's owner do: each member asks its own processes. Pods on members reach no ports of hosts but those that are
offered, and others than members none of these.
"""

from __future__ import annotations

from collections.abc import Iterable

from isthmus.model.network import State
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


def elements(state: State, node: str, settings: Logins) -> dict[str, frozenset[str]]:
    """Return what each set should hold on a node."""
    known = [
        (job, job.addresses[0], state.nodes[job.nodes[0]].address, "{}-{}".format(*settings.ports(job.id)))
        for job in logins(state)
        if job.addresses and job.nodes[0] in state.nodes
    ]
    here = [(address, ports) for job, address, _, ports in known if job.nodes == (node,)]
    return {
        "login_pods": frozenset(str(address) for address, _ in here),
        "login_ways": frozenset(f"{ports} : {address}" for address, ports in here),
        "login_ports": frozenset(f"{host} . {ports}" for _, _, host, ports in known),
        "login_owners": frozenset(f"{host} . {ports} . {job.uid}" for job, _, host, ports in known),
    }
