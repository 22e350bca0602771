"""The node's part of a driver, for the daemon's operations and threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from ipaddress import IPv4Address
from typing import Any, Protocol

from isthmus.model.network import Driver
from isthmus.model.node_network import SharedPod
from isthmus.network.dns.names import NodeNames
from isthmus.network.drivers.contract import SharedSettings
from isthmus.network.node.converge import Converger
from isthmus.network.state.store import Store
from isthmus.network.state.view import View

# Where the kernel has namespaces by name (ip-netns(8)).
NAMESPACES = "/run/netns"
# How long for etcd's word that a change of one's own was made.
ECHO_S = 5.0
# Subjects of errors that concern every pod.
SHARED_ERRORS = frozenset({"filter", "state"})


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What a driver works with.

    Attributes:
        node: this node's name.
        store: etcd.
        view: the newest snapshot.
        converger: private networks, the packet filter and DNS.
        names: the files that pods resolve names with.
    """

    node: str
    store: Store
    view: View
    converger: Converger
    names: NodeNames


class Network(Protocol):
    """One driver on this node."""

    def make(self, job: int) -> None:
        """Make what is desired on this node, the job's pod with it.

        Raises:
            RequestError: etcd does not answer.
        """

    def ready(self, job: int) -> Mapping[str, Any] | None:
        """Return what the job's steps need to know; None unless all of it is there."""

    def owners(self) -> Iterable[int]:
        """Return the uid of each pod here."""

    def owner(self, job: int) -> int | None:
        """Return the uid of a job's pod here, None without one."""

    def errors(self) -> Mapping[str, str]:
        """Return what is not as desired, and why."""

    def shared_pods(self) -> Mapping[int, SharedPod]:
        """Return the pods of a shared network that exist here, by job id; rules and names follow them."""

    def loop(self) -> Callable[[float], None] | None:
        """Return what follows the state in a thread of its own; None where the daemon's own pass does all.

        It never returns. Its argument is how long a pass may be away although nothing changed, in seconds.
        """


def connect(driver: Driver, context: NodeContext, settings: SharedSettings | None) -> Network:
    """Return what makes a driver's pods on this node: its folder is found by name."""
    found: Network = import_module(f"{__package__}.{driver}.network").connect(context, settings)
    return found


def description(namespace: str, leg: str, address: IPv4Address, names: NodeNames, job: int) -> Mapping[str, Any]:
    """Return what a job's steps need to know of its pod."""
    return {
        "netns": f"{NAMESPACES}/{namespace}",
        "leg": leg,
        "address": str(address),
        "resolv_conf": str(names.resolv_conf(job)),
    }
