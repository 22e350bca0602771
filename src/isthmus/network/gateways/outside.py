"""The outside addresses: on the gateway that leads out, and on no other.

Nobody outside speaks our protocol, so neighbours learn by ARP where an address is now. One announcement may get lost:
there are some. A gateway that alone does not reach etcd learns by ARP, too, that another one has taken the addresses
over: it asks for them, and lets go.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address
from threading import Lock
from typing import Protocol

from isthmus.model.network import State
from isthmus.model.node_network import NodePlan
from isthmus.network.gateways.choice import leading

ANNOUNCEMENTS = 4


class Holder(Protocol):
    """This host's kernel."""

    def hold(self, wanted: Collection[IPv4Address]) -> bool:
        """Hold some addresses and no others; return whether that is new. Raises NetlinkError."""

    def announce(self, addresses: Collection[IPv4Address]) -> None:
        """Announce to neighbours where these addresses are. Raises OSError."""

    def reaches(self, addresses: Collection[IPv4Address]) -> bool:
        """Return whether each address is of a link that has a carrier. Raises NetlinkError."""

    def is_elsewhere(self, address: IPv4Address) -> bool:
        """Return whether another host says that it has an address. Raises OSError."""


class OutsideAddresses:
    """Follows which gateway leads out; may be used by several threads.

    Args:
        node: this node's name.
        addresses: all outside addresses.
        holder: of them.
    """

    def __init__(self, node: str, addresses: frozenset[IPv4Address], holder: Holder) -> None:
        self._node, self._addresses, self._holder = node, addresses, holder
        self._lock = Lock()
        self._due = 0
        self._is_given_up = False
        self._leads = False

    def follow(self, desired: NodePlan, state: State) -> None:
        """Hold the addresses while this node leads out; the packet filter knows it already.

        Raises:
            NetlinkError: the kernel refused.
            OSError: they could not be announced.
        """
        with self._lock:
            self._leads = leading(state) == self._node
            self._hold()
        self.announce()

    def announce(self) -> None:
        """Announce them if that is due; called now and then.

        Raises:
            OSError: they could not be announced.
        """
        with self._lock:
            if self._due:
                self._due -= 1
                self._holder.announce(self._addresses)

    def is_reached(self) -> bool:
        """Return whether this host is on the links that the addresses are of.

        Raises:
            NetlinkError: the kernel does not answer.
        """
        with self._lock:
            return self._holder.reaches(self._addresses)

    def give_up(self) -> bool:
        """Let go of the addresses if another host has them too, until `resume`; return whether it was so.

        Raises:
            NetlinkError: the kernel refused.
            OSError: nobody could be asked.
        """
        with self._lock:
            if not self._is_given_up and self._leads and self._addresses:
                self._is_given_up = self._holder.is_elsewhere(min(self._addresses))
                self._hold()
            return self._is_given_up

    def resume(self) -> None:
        """Hold them again: etcd says that this gateway leads out.

        Raises:
            NetlinkError: the kernel refused.
        """
        with self._lock:
            if self._is_given_up:
                self._is_given_up = False
                self._hold()

    def _hold(self) -> None:
        leads = self._leads and not self._is_given_up
        wanted = self._addresses if leads else frozenset[IPv4Address]()
        if self._holder.hold(wanted):
            self._due = ANNOUNCEMENTS if wanted else 0
