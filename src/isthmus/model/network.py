"""The pod networks of the whole cluster, as stored in etcd.

A user has one virtual network: a VXLAN network identifier (RFC 7348) and one or more blocks of the cluster's pod
range. A job that asks for it has one address on each of its nodes; a node where the user has a pod, or holds a lease,
has one more address of the user's, the leg's: the host's own interface in that network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network
from typing import Self

# RFC 1035, 2.3.4: the longest label.
LABEL_MAX = 63
# A label that begins with a letter, as job ids are labels.
_RESERVATION = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
# The name of the reservation that a user's control plane has.
CONTROL_PLANE = "kubernetes"


def label(text: str) -> str:
    """Make a DNS label of any name: lower case, what is no letter or digit becomes a hyphen; may be empty."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:LABEL_MAX].strip("-")


def is_reservation(text: str) -> bool:
    """Return whether a text can name a reservation: a DNS label (RFC 1035, 2.3.4) that begins with a letter."""
    return len(text) <= LABEL_MAX and _RESERVATION.fullmatch(text) is not None


class Promise(StrEnum):
    """What pods have in a network, whatever the site is; docs/admins/cni.md has the table."""

    ISOLATION = "users are kept apart"
    FIXED_ADDRESSES = "addresses are kept by name"
    SERVICES = "Services have addresses"
    NAMES = "pods have names"
    BETWEEN_NODES = "pods of different nodes reach one another"


class Driver(StrEnum):
    """How a job's pods are connected; the values of `--pod-network`. A new driver is one line here, and its folders.

    `make generate` brings the line to the SPANK plugin and to the choices of roles' variables.

    Attributes:
        usage: for `srun --help`.
        promises: what layers above may count on.
    """

    usage: str
    promises: frozenset[Promise]

    def __new__(cls, name: str, usage: str = "", *promises: Promise) -> Self:
        """Make a driver."""
        made = str.__new__(cls, name)
        made._value_ = name
        made.usage = usage
        made.promises = frozenset(promises)
        return made

    PRIVATE = "private", "in a network that only its user reaches", *Promise
    FLANNEL = "flannel", "in one for all", Promise.NAMES, Promise.BETWEEN_NODES
    ROUTED = (
        "routed",
        "in one without a tunnel where users are apart",
        Promise.ISOLATION,
        Promise.NAMES,
        Promise.BETWEEN_NODES,
    )
    # Nobody here knows what connects the nodes, or who shares a bridge.
    CNI = "cni", "in one of the site's own CNI plugins", Promise.NAMES
    NONE = "none", "not at all"

    def lacks(self, needed: Iterable[Promise]) -> list[Promise]:
        """Return what it does not promise of what a layer needs; `none` is no pod network, and lacks nothing."""
        return [] if self is Driver.NONE else [promise for promise in needed if promise not in self.promises]


class Transport(StrEnum):
    """What a gateway can lead in to a pod's port; that of a Service (model/services.py) may be SCTP as well."""

    TCP = "tcp"
    UDP = "udp"


@dataclass(frozen=True, slots=True)
class Ranges:
    """What addresses and identifiers are taken from; the same on every node.

    Attributes:
        pods: the range all blocks are cut from; overlaps neither nodes nor services.
        block_prefix: prefix length of the smallest block; a request that needs more takes a larger block.
        vni_first: the lowest VXLAN network identifier, of 24 bits.
        vni_last: the highest.
    """

    pods: IPv4Network
    block_prefix: int = 24
    vni_first: int = 4096
    vni_last: int = 2**24 - 1


@dataclass(frozen=True, slots=True)
class Node:
    """A member of the pod networks.

    Attributes:
        name: as Slurm names it, or the host name where Slurm does not know it.
        address: where its VXLAN packets come from and go to (the VTEP).
        mtu: of the interface that holds `address`, bytes.
        gateway: whether pods' way out and in may lead over it.
    """

    name: str
    address: IPv4Address
    mtu: int = 1500
    gateway: bool = False


@dataclass(frozen=True, slots=True)
class User:
    """A user's network.

    Attributes:
        uid: whose it is.
        name: the login name; a label of DNS names.
        vni: identifier of the user's VXLAN.
        blocks: the user's part of the pod range, in the order they were taken.
        legs: node name -> address of the host there; kept while a job or a lease needs it.
        reserved: name -> address kept for a service of that name (letters, digits, hyphens).
        cursor: the address given last; the search goes on after it, so that a freed one rests for long.
    """

    uid: int
    name: str
    vni: int
    blocks: tuple[IPv4Network, ...] = ()
    legs: Mapping[str, IPv4Address] = field(default_factory=dict)
    reserved: Mapping[str, IPv4Address] = field(default_factory=dict)
    cursor: IPv4Address | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A Slurm job with a pod network; `addresses[i]` is the one on `nodes[i]`.

    Where a driver leaves addresses to the nodes, each makes its own known by an Attachment, and the job has none.

    Attributes:
        id: Slurm's job id.
        uid: whose job it is.
        name: the job's name.
        driver: which network it has.
        nodes: node names in Slurm's order.
        addresses: of the pod on each node; none where nodes give them.
        reservation: name whose address the pod on the first node has; empty for none.
    """

    id: int
    uid: int
    name: str
    driver: Driver
    nodes: tuple[str, ...]
    addresses: tuple[IPv4Address, ...]
    reservation: str = ""

    def on(self, node: str) -> IPv4Address | None:
        """Return the pod's address on a node, None where the job is not."""
        return dict(zip(self.nodes, self.addresses, strict=True)).get(node)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A job's pod on one node, where nodes give the addresses, as that node makes it known to the others.

    Attributes:
        job: Slurm's job id.
        node: which node.
        address: of the pod; from the node's subnet.
    """

    job: int
    node: str
    address: IPv4Address


@dataclass(frozen=True, slots=True)
class Lease:
    """A node's membership in a user's network without a pod there (`isthmus up` on a login node).

    Attributes:
        uid: whose network.
        node: which node.
        since_s: when it was taken, seconds since the epoch.
    """

    uid: int
    node: str
    since_s: int


@dataclass(frozen=True, slots=True)
class Active:
    """The gateway that leads out, until another one takes over.

    Attributes:
        node: its name.
    """

    node: str


@dataclass(frozen=True, slots=True)
class Heard:
    """A gateway that is heard of; etcd forgets it otherwise.

    Attributes:
        node: its name.
    """

    node: str


@dataclass(frozen=True, slots=True)
class Exposure:
    """A port of a user's reservation that is open to the outside, as far as the admin's rules let it be.

    Attributes:
        address: outside, where it is reached.
        protocol: of the port.
        port: the same outside and in the pod.
        uid: who opened it.
        reservation: whose address it leads to.
    """

    address: IPv4Address
    protocol: Transport
    port: int
    uid: int
    reservation: str

    @property
    def door(self) -> Door:
        """What there is one of outside."""
        return self.address, self.protocol, self.port


Door = tuple[IPv4Address, Transport, int]


@dataclass(frozen=True, slots=True)
class State:
    """All that etcd knows at one revision.

    Attributes:
        nodes: by name.
        users: by uid.
        jobs: by job id.
        leases: by (uid, node name).
        revision: etcd's, of which this is the state.
        attachments: by (job id, node name).
        gateway: the gateway that leads out, heard of or not; empty before there was one.
        heard: gateways that are heard of, by name.
        exposed: open ports, by outside address, protocol and port.
    """

    nodes: Mapping[str, Node] = field(default_factory=dict)
    users: Mapping[int, User] = field(default_factory=dict)
    jobs: Mapping[int, Job] = field(default_factory=dict)
    leases: Mapping[tuple[int, str], Lease] = field(default_factory=dict)
    revision: int = 0
    attachments: Mapping[tuple[int, str], Attachment] = field(default_factory=dict)
    gateway: str = ""
    heard: Mapping[str, Heard] = field(default_factory=dict)
    exposed: Mapping[Door, Exposure] = field(default_factory=dict)

    @property
    def gateways(self) -> frozenset[str]:
        """The nodes that may lead out."""
        return frozenset(name for name, node in self.nodes.items() if node.gateway)

    def addresses(self, job: Job) -> tuple[IPv4Address | None, ...]:
        """Return the address of a job's pod on each of its nodes; None where a node has not made one known yet."""
        if job.addresses:
            return job.addresses
        known = (self.attachments.get((job.id, node)) for node in job.nodes)
        return tuple(each.address if each else None for each in known)
