"""The pod networks of one node: desired or observed objects of its kernel.

Names are derived, never chosen, so that a daemon that lost its memory finds all it made:
leg (bridge) `il<vni>`, VXLAN device `ix<vni>`, a pod's host end `iv<job>`, its namespace `isthmus-<job>`.
In a network that all users share a pod's namespace is `isthmus-<driver>-<job>`; the rest is the driver's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from isthmus.model.network import Driver

LEG, VXLAN, VETH, NAMESPACE = "il", "ix", "iv", "isthmus-"
POD_INTERFACE = "eth0"
# RFC 7348.
VXLAN_PORT = 4789
# Outer Ethernet, IPv4, UDP and VXLAN headers (RFC 7348, 5).
VXLAN_OVERHEAD = 50
# Where frames to everybody go (bridge(8): the default destination of a VXLAN device).
FLOOD = "00:00:00:00:00:00"
# Of a leg or pod whose IPv6 addresses and routes are not those that go with its IPv4 ones; nobody's range.
UNKNOWN = IPv6Network("::/96")


def shared_prefix(driver: Driver) -> str:
    """Return what the names of namespaces begin with in a network that all users share."""
    return f"{NAMESPACE}{driver}-"


def mac(address: IPv4Address | IPv6Address) -> str:
    """Return the locally administered MAC of a pod or leg: 0a:58 and its address, as CNI's bridge plugin has it.

    An IPv6 address has that of the IPv4 one it goes with.
    """
    return ":".join(["0a", "58", *(f"{byte:02x}" for byte in address.packed[-4:])])


@dataclass(frozen=True, slots=True)
class Forward:
    """A forwarding entry of a VXLAN device: frames to `mac` go to the node at `peer`; FLOOD is for everybody's."""

    mac: str
    peer: IPv4Address


@dataclass(frozen=True, slots=True)
class Leg:
    """A user's bridge, with the host's own address on it, and the VXLAN device that is its way to other nodes.

    Attributes:
        vni: identifier of the user's VXLAN.
        uid: whose network.
        address: the host's in it.
        blocks: the user's part of the pod range: routes by this interface.
        underlay: the node's own address, where VXLAN packets leave from.
        mtu: of bridge and VXLAN device, bytes.
        forwards: every pod and leg of the user on other nodes.
        ipv6: what IPv6 addresses begin with (`networks.ipv6`); None without IPv6, UNKNOWN only observed.
    """

    vni: int
    uid: int
    address: IPv4Address
    blocks: tuple[IPv4Network, ...]
    underlay: IPv4Address
    mtu: int
    forwards: frozenset[Forward] = frozenset()
    ipv6: IPv6Network | None = None

    @property
    def name(self) -> str:
        """The interface's name; the bridge is the leg."""
        return f"{LEG}{self.vni}"

    @property
    def vxlan(self) -> str:
        """Name of the VXLAN device."""
        return f"{VXLAN}{self.vni}"


@dataclass(frozen=True, slots=True)
class Pod:
    """A job's network namespace on this node and the pair of interfaces that joins it to the user's leg.

    Attributes:
        job: Slurm's job id.
        uid: whose job.
        vni: which leg's bridge it is attached to.
        address: the pod's; its MAC follows from it.
        gateway: the leg's address here, the default route.
        blocks: the user's part of the pod range: on the link.
        mtu: bytes.
        peers: the job's other nodes, as (node's address, address of the user's leg there): routes without which srun
            inside a pod cannot be answered by the other nodes' slurmstepd.
        ipv6: what IPv6 addresses begin with, as of a leg.
    """

    job: int
    uid: int
    vni: int
    address: IPv4Address
    gateway: IPv4Address
    blocks: tuple[IPv4Network, ...]
    mtu: int
    peers: frozenset[tuple[IPv4Address, IPv4Address]] = frozenset()
    ipv6: IPv6Network | None = None

    @property
    def veth(self) -> str:
        """Name of the host's end."""
        return f"{VETH}{self.job}"

    @property
    def namespace(self) -> str:
        """Name of the namespace, a file in /run/netns."""
        return f"{NAMESPACE}{self.job}"


@dataclass(frozen=True, slots=True)
class SharedPod:
    """A job's network namespace on this node, in a network that all users share.

    Attributes:
        driver: which network.
        job: Slurm's job id.
        uid: whose job.
        address: the pod's, of the node's subnet.
        gateway: the bridge's: default route, DNS, and where PMIx listens.
        end: the interface that its packets arrive by, where the driver cannot derive it.
        leg: the interface that has `gateway`, where the driver cannot derive it.
    """

    driver: Driver
    job: int
    uid: int
    address: IPv4Address
    gateway: IPv4Address
    end: str = ""
    leg: str = ""

    @property
    def namespace(self) -> str:
        """Name of the namespace, a file in /run/netns."""
        return f"{shared_prefix(self.driver)}{self.job}"


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What should exist on a node, or what does.

    Attributes:
        legs: by VNI.
        pods: by job id.
        broken: names of interfaces and namespaces of ours that are half made; only observed, never desired.
        shared: pods of shared networks that do exist, by job id; rules and names follow them.
    """

    legs: Mapping[int, Leg] = field(default_factory=dict)
    pods: Mapping[int, Pod] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    shared: Mapping[int, SharedPod] = field(default_factory=dict)
