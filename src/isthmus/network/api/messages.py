"""Requests and responses of the daemon's socket.

A request is one of these objects, once `protocol` has read it; `OPS` has their names on the socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from isthmus.model.network import Driver, Transport
from isthmus.model.services import Table

# How long a preparation may take where a client does not say.
PREPARE_TIMEOUT_S = 20.0


class ErrorCode(StrEnum):
    """Why a request was refused."""

    MALFORMED = "malformed"
    VERSION = "version"
    UNKNOWN_OP = "unknown_op"
    INVALID = "invalid"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    FULL = "full"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"
    INTERNAL = "internal"


class JobState(StrEnum):
    """How far a job's network is on this node."""

    READY = "ready"
    PREPARING = "preparing"
    FAILED = "failed"
    ABSENT = "absent"


class TraceProtocol(StrEnum):
    """What a traced packet is."""

    TCP = "tcp"
    UDP = "udp"
    ICMP = "icmp"


@dataclass(frozen=True, slots=True)
class JobPrepare:
    """Make a job's network on this node, and answer when it is there, or earlier that it is being made.

    Attributes:
        job: Slurm's job id.
        uid: whose job.
        user: the login name.
        name: the job's name.
        nodes: the job's, in Slurm's order.
        driver: which network it gets.
        reservation: whose address its first pod gets; empty for none.
        timeout_s: after this it has failed, and the client gets an error.
        answer_s: after this the client gets "in progress"; None where they want to know how it ends.
    """

    job: int
    uid: int
    user: str
    name: str
    nodes: tuple[str, ...]
    driver: Driver
    reservation: str = ""
    timeout_s: float = PREPARE_TIMEOUT_S
    answer_s: float | None = None


@dataclass(frozen=True, slots=True)
class JobGet:
    """Return how far a job's network is on this node."""

    job: int


@dataclass(frozen=True, slots=True)
class JobRelease:
    """Remove a job's network from this node, later."""

    job: int


@dataclass(frozen=True, slots=True)
class JobServices:
    """Replace the Services that a job's pod on this node reaches by their addresses."""

    job: int
    services: Table


@dataclass(frozen=True, slots=True)
class LeaseTake:
    """Make this node a member of a user's network; `uid` is the peer's where it is None, here and below."""

    uid: int | None = None


@dataclass(frozen=True, slots=True)
class LeaseDrop:
    """End that."""

    uid: int | None = None


@dataclass(frozen=True, slots=True)
class Reserve:
    """Keep an address for a user's service."""

    name: str
    uid: int | None = None


@dataclass(frozen=True, slots=True)
class Unreserve:
    """Give it back."""

    name: str
    uid: int | None = None


@dataclass(frozen=True, slots=True)
class Expose:
    """Open a port of a user's reservation to the outside, where the admin's rules let anybody in.

    Attributes:
        name: of the reservation.
        port: in the pod, and outside.
        protocol: of the port.
        uid: whose; the peer's where it is None.
    """

    name: str
    port: int
    protocol: Transport = Transport.TCP
    uid: int | None = None


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Close it; fields as for Expose."""

    name: str
    port: int
    protocol: Transport = Transport.TCP
    uid: int | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """Return how this node is."""


@dataclass(frozen=True, slots=True)
class List:
    """List jobs, addresses and owners."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Return which rules are between two points.

    Attributes:
        source: an address or a name.
        target: an address or a name.
        protocol: what is sent.
        port: the target's; 0 for any.
    """

    source: str
    target: str
    protocol: TraceProtocol = TraceProtocol.TCP
    port: int = 0


@dataclass(frozen=True, slots=True)
class Metrics:
    """Return what the daemon measured, for Prometheus."""


@dataclass(frozen=True, slots=True)
class NodeForget:
    """Take a node that left the cluster out of the pod networks."""

    node: str


@dataclass(frozen=True, slots=True)
class Rekey:
    """Give this node another key for the encryption between nodes."""


@dataclass(frozen=True, slots=True)
class LoginPrepare:
    """Make a user's login pod on this node, if there is none; `pid` is the peer's."""

    uid: int
    pid: int


@dataclass(frozen=True, slots=True)
class LoginEnter:
    """The same, and the process `pid` is a session in it, to its end."""

    uid: int
    pid: int


Request = (
    JobPrepare
    | JobGet
    | JobRelease
    | JobServices
    | LeaseTake
    | LeaseDrop
    | Reserve
    | Unreserve
    | Expose
    | Withdraw
    | Status
    | List
    | Trace
    | Metrics
    | NodeForget
    | Rekey
    | LoginPrepare
    | LoginEnter
)

OPS: Mapping[str, type[Request]] = {
    "job_prepare": JobPrepare,
    "job_get": JobGet,
    "job_release": JobRelease,
    "job_services": JobServices,
    "lease_take": LeaseTake,
    "lease_drop": LeaseDrop,
    "reserve": Reserve,
    "unreserve": Unreserve,
    "expose": Expose,
    "withdraw": Withdraw,
    "status": Status,
    "list": List,
    "trace": Trace,
    "metrics": Metrics,
    "node_forget": NodeForget,
    "rekey": Rekey,
    "login_prepare": LoginPrepare,
    "login_enter": LoginEnter,
}
