"""What the admin decides about gateways; the same on all nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, summarize_address_range
from typing import Any

from isthmus.model.network import Transport


@dataclass(frozen=True, slots=True)
class Outside:
    """Addresses that pods are seen with outside; one is chosen for each pod.

    Attributes:
        first: the lowest; exposed ports are reached there.
        last: the highest.
        uids: whose pods; empty for all that no other entry names.
    """

    first: IPv4Address
    last: IPv4Address
    uids: frozenset[int] = frozenset()

    @property
    def addresses(self) -> list[IPv4Address]:
        """Return each of them."""
        return [IPv4Address(each) for each in range(int(self.first), int(self.last) + 1)]

    def __str__(self) -> str:
        """Return what nft calls them."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class Ingress:
    """A rule for what comes from outside to exposed ports.

    Attributes:
        allows: whether what matches may come in.
        source: where from.
        protocol: of the port.
        first: the lowest port.
        last: the highest.
        uid: whose pods; None for everybody's.
        reservation: which of the user's; empty for any.
    """

    allows: bool
    source: IPv4Network
    protocol: Transport
    first: int
    last: int
    uid: int | None = None
    reservation: str = ""

    def is_about(self, uid: int, reservation: str, protocol: Transport, port: int) -> bool:
        """Return whether it is about a port, wherever the packet comes from."""
        return (
            self.uid in (None, uid)
            and self.reservation in ("", reservation)
            and self.protocol is protocol
            and self.first <= port <= self.last
        )


@dataclass(frozen=True, slots=True)
class Gateways:
    """The admin's settings.

    Attributes:
        outside: who is seen with which addresses; others with the gateway's own.
        ingress: the first rule that matches decides; what none matches does not come in.
        is_here: whether this host is a gateway.
    """

    outside: tuple[Outside, ...] = ()
    ingress: tuple[Ingress, ...] = ()
    is_here: bool = False

    @property
    def addresses(self) -> frozenset[IPv4Address]:
        """All outside addresses."""
        return frozenset(address for each in self.outside for address in each.addresses)

    @property
    def networks(self) -> list[IPv4Network]:
        """All outside addresses, as few networks."""
        return [network for each in self.outside for network in summarize_address_range(each.first, each.last)]

    def of(self, uid: int) -> Outside | None:
        """Return what a user's pods are seen with; None for the gateway's own address."""
        own = next((each for each in self.outside if uid in each.uids), None)
        return own or next((each for each in self.outside if not each.uids), None)

    def named(self, uid: int) -> frozenset[str]:
        """Return the reservations of a user that rules name."""
        return frozenset(rule.reservation for rule in self.ingress if rule.uid == uid and rule.reservation)


def read(raw: Mapping[str, Any]) -> Gateways:
    """Read the daemon's settings of gateways.

    Raises:
        KeyError: a field is missing.
        ValueError: a field has no value that can be.
    """
    return Gateways(
        tuple(map(_outside, raw["outside"])), tuple(map(_ingress, raw["ingress"])), bool(raw.get("here", False))
    )


def _outside(raw: Mapping[str, Any]) -> Outside:
    return Outside(IPv4Address(raw["first"]), IPv4Address(raw["last"]), frozenset(map(int, raw["uids"])))


def _ingress(raw: Mapping[str, Any]) -> Ingress:
    first, _, last = str(raw["ports"]).partition("-")
    return Ingress(
        raw["action"] == "allow",
        IPv4Network(raw["from"]),
        Transport(raw["protocol"]),
        int(first),
        int(last or first),
        raw["uid"],
        raw["reservation"],
    )
