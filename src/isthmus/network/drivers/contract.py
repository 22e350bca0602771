"""The pure part of a driver: for etcd's state, the packet filter, DNS and trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, Protocol

from isthmus.model.network import Driver, Ranges, State
from isthmus.model.node_network import SharedPod
from isthmus.network.state.ipam import Request, Taken


class SharedNetwork(Protocol):
    """A network that all users share: one range and one bridge on each node, and rules of its own."""

    @property
    def driver(self) -> Driver:
        """Whose it is."""

    @property
    def range(self) -> IPv4Network:
        """All addresses of its pods and bridges."""

    @property
    def bridge(self) -> str:
        """The interface by which its pods reach the node; all that begin with the rest where it ends with *."""

    def user_set(self, uid: int) -> str:
        """Return the name of the set with the addresses of a user's pods here."""

    def sets(self) -> dict[str, str]:
        """Return the sets of its own, besides those of users, as nft declares them."""

    def own_legs(self, pods: Mapping[int, SharedPod]) -> frozenset[str]:
        """Return the elements of the set `legs` for the bridge, where there are pods."""

    def elements(self, pods: Mapping[int, SharedPod], uids: Iterable[int], state: State) -> dict[str, frozenset[str]]:
        """Return what each set of its own should hold: by its pods here, and by those that other nodes made known."""

    def chains(self, private: IPv4Network, outside: list[str]) -> dict[str, list[str]]:
        """Return its chains of the table `inet`, whose names say what they refuse (`node.refused`).

        Args:
            private: the range of private networks.
            outside: rules for what pods send elsewhere, the last of which decides.
        """


class SharedSettings(Protocol):
    """What /etc/isthmus/network.json says of a driver with a shared network."""

    @property
    def network(self) -> SharedNetwork:
        """What filter and DNS need to know."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A driver.

    Attributes:
        driver: its name, the value of `--pod-network`.
        allocate: works out what a job takes from etcd.
        has_addresses: whether etcd gives the addresses, from the user's own blocks, with reservations; else the nodes
            do, and make them known by attachments.
        is_traced: whether `isthmus network trace` can explain it.
        tunnel_ports: UDP ports that its nodes' packets arrive at; no user sends to them.
        units: daemons of its own on a node, by their names in systemd.
        read: reads its part of the daemon's settings; None for a driver that needs no more than all have.
        form: of etcd's records since which its jobs can be read (`state.forms`).
    """

    driver: Driver
    allocate: Callable[[State, Ranges, Request], Taken]
    has_addresses: bool
    is_traced: bool
    tunnel_ports: tuple[int, ...] = ()
    units: tuple[str, ...] = ()
    read: Callable[[Mapping[str, Any]], SharedSettings] | None = None
    form: int = 1
