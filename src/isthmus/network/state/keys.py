"""Keys of etcd: `/isthmus/<cluster>/network/` and what is below it.

    nodes/<node>          a node's address and MTU, written by its daemon
    users/<uid>           a user's network
    jobs/<job id>         a job's nodes and addresses
    leases/<uid>/<node>   a node's membership in a user's network without a pod
    attachments/<job id>/<node>   address of a job's pod where nodes give them, written by the node's daemon
    gateway               the gateway that leads out
    heard/<node>          a gateway; goes with a lease of etcd's that its daemon keeps alive
    exposed/<address>/<protocol>/<port>   a port of a user's that is open to the outside
    ranges                the ranges everything is taken from, and a serial number

Each thing has exactly one key: numbers are written without leading zeros, names have no slash.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from isthmus.model.network import Transport
from isthmus.network.bounds import JOB_MAX, PORT_MAX, UID_MAX, is_node_name


class StoredError(Exception):
    """Something in etcd is not as this version writes it."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(
            f"etcd key {key}: {problem}; delete it by etcdctl if it is nobody's, else restore etcd from a backup"
        )
        self.key = key


@dataclass(frozen=True, slots=True)
class NodeKey:
    """Where a node is kept."""

    name: str


@dataclass(frozen=True, slots=True)
class UserKey:
    """Where a user's network is kept."""

    uid: int


@dataclass(frozen=True, slots=True)
class JobKey:
    """Where a job is kept."""

    id: int


@dataclass(frozen=True, slots=True)
class LeaseKey:
    """Where a lease is kept."""

    uid: int
    node: str


@dataclass(frozen=True, slots=True)
class RangesKey:
    """Where the guard of all ranges is kept."""


@dataclass(frozen=True, slots=True)
class AttachmentKey:
    """Where the address that a node gave a job's pod is kept."""

    job: int
    node: str


@dataclass(frozen=True, slots=True)
class GatewayKey:
    """Where the gateway that leads out is kept."""


@dataclass(frozen=True, slots=True)
class HeardKey:
    """Where it is kept that a gateway is heard of."""

    node: str


@dataclass(frozen=True, slots=True)
class ExposedKey:
    """Where an open port is kept."""

    address: IPv4Address
    protocol: Transport
    port: int


Key = NodeKey | UserKey | JobKey | LeaseKey | AttachmentKey | GatewayKey | HeardKey | ExposedKey | RangesKey


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one cluster.

    Attributes:
        cluster: its id, which no other cluster with the same etcd has.
    """

    cluster: str

    def __post_init__(self) -> None:
        """Refuse what would make other keys.

        Raises:
            ValueError: an id that cannot be part of a key.
        """
        if not is_node_name(self.cluster):
            raise ValueError(f"cluster id {self.cluster!r} cannot be in a key; use letters, digits, '.', '_' and '-'")

    @property
    def prefix(self) -> str:
        """What all keys begin with."""
        return f"/isthmus/{self.cluster}/network/"

    def path(self, key: Key) -> str:
        """Return a key as etcd has it."""
        return f"{self.prefix}{_below(key)}"

    def attachments(self, job: int) -> str:
        """Return what the keys of all attachments of a job begin with."""
        return f"{self.prefix}attachments/{job}/"

    def parse(self, path: str) -> Key:
        """Undo `path`.

        Raises:
            StoredError: no key of this cluster's pod networks.
        """
        found = _parse(path[len(self.prefix) :].split("/")) if path.startswith(self.prefix) else None
        # One spelling only: 07 and 7 would be two documents of one job.
        if found is None or self.path(found) != path:
            raise StoredError(path, "no key of this version")
        return found


def _below(key: Key) -> str:
    match key:
        case NodeKey():
            return f"nodes/{key.name}"
        case UserKey():
            return f"users/{key.uid}"
        case JobKey():
            return f"jobs/{key.id}"
        case LeaseKey():
            return f"leases/{key.uid}/{key.node}"
        case AttachmentKey():
            return f"attachments/{key.job}/{key.node}"
        case GatewayKey():
            return "gateway"
        case HeardKey():
            return f"heard/{key.node}"
        case ExposedKey():
            return f"exposed/{key.address}/{key.protocol}/{key.port}"
        case RangesKey():
            return "ranges"


def _parse(words: list[str]) -> Key | None:
    match words:
        case ["nodes", name] if is_node_name(name):
            return NodeKey(name)
        case ["users", uid] if _is_number(uid, 0, UID_MAX):
            return UserKey(int(uid))
        case ["jobs", job] if _is_number(job, 1, JOB_MAX):
            return JobKey(int(job))
        case ["leases", uid, node] if _is_number(uid, 0, UID_MAX) and is_node_name(node):
            return LeaseKey(int(uid), node)
        case ["attachments", job, node] if _is_number(job, 1, JOB_MAX) and is_node_name(node):
            return AttachmentKey(int(job), node)
        case ["gateway"]:
            return GatewayKey()
        case ["heard", name] if is_node_name(name):
            return HeardKey(name)
        case ["exposed", address, ("tcp" | "udp") as protocol, port] if _is_number(port, 1, PORT_MAX):
            found = _address(address)
            return ExposedKey(found, Transport(protocol), int(port)) if found else None
        case ["ranges"]:
            return RangesKey()
    return None


def _address(text: str) -> IPv4Address | None:
    try:
        return IPv4Address(text)
    except ValueError:
        return None


def _is_number(text: str, first: int, last: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(last)) and first <= int(text) <= last
