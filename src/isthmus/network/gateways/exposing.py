"""Ports that users open to the outside: what may be opened, and what is open. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import Any

from isthmus.model.network import Exposure, State, Transport
from isthmus.network.gateways.settings import Gateways
from isthmus.network.state.ipam import AllocationError, NotReservedError

# A user's at a time; each is two elements of the filter.
EXPOSED_MAX = 64
_ANYWHERE = IPv4Network("0.0.0.0/0")


class ExposeError(AllocationError):
    """A port that cannot be opened."""


def is_permitted(gateways: Gateways, uid: int, reservation: str, protocol: Transport, port: int) -> bool:
    """Return whether anybody outside may reach a port."""
    for rule in gateways.ingress:
        if rule.is_about(uid, reservation, protocol, port):
            if rule.allows:
                return True
            if rule.source == _ANYWHERE:
                return False
    return False


def wanted(gateways: Gateways | None, uid: int, user: str, name: str, protocol: Transport, port: int) -> Exposure:
    """Return what a user asks for.

    Raises:
        ExposeError: it may not be.
    """
    if gateways is None:
        raise ExposeError(
            "this cluster has no gateways, so nothing outside reaches a pod; an admin adds group gateways"
        )
    seen = gateways.of(uid)
    if seen is None or not is_permitted(gateways, uid, name, protocol, port):
        raise ExposeError(
            f"no rule lets anybody outside reach {name}.{user}:{port} by {protocol}; an admin adds one to"
            f" network_ingress{'' if seen else ', and an address to network_outside_addresses'}"
        )
    return Exposure(seen.first, protocol, port, uid, name)


def is_new(state: State, exposure: Exposure, user: str) -> bool:
    """Return whether a port is to be opened; False for one that is open already.

    Raises:
        AllocationError: it cannot be opened.
    """
    known = state.users.get(exposure.uid)
    if known is None or exposure.reservation not in known.reserved:
        raise NotReservedError(
            f"{user} has no reservation {exposure.reservation}; `isthmus network reserve {exposure.reservation}` first"
        )
    other = state.exposed.get(exposure.door)
    if other == exposure:
        return False
    where = f"{exposure.protocol} port {exposure.port} of {exposure.address}"
    if other is not None and other.uid == exposure.uid:
        raise ExposeError(f"{where} leads to {other.reservation}; withdraw {other.reservation}:{other.port} first")
    if other is not None:
        raise ExposeError(f"{where} is another user's; choose another port, or ask for an address of your own")
    if sum(each.uid == exposure.uid for each in state.exposed.values()) >= EXPOSED_MAX:
        raise ExposeError(f"{user} has {EXPOSED_MAX} ports open, as many as one may; withdraw one")
    return True


def of_reservation(state: State, uid: int, name: str) -> list[Exposure]:
    """Return the ports of a reservation that are open."""
    return [each for each in state.exposed.values() if each.uid == uid and each.reservation == name]


def shown(state: State, gateways: Gateways | None, uid: int | None) -> Iterator[Mapping[str, Any]]:
    """Yield a user's open ports for people, all for None."""
    for each in sorted(state.exposed.values(), key=lambda one: (one.uid, one.reservation, one.protocol, one.port)):
        if uid in (None, each.uid):
            owner = state.users.get(each.uid)
            yield {
                "user": owner.name if owner else str(each.uid),
                "name": each.reservation,
                "outside": f"{each.address}:{each.port}",
                "protocol": str(each.protocol),
                "state": _why(gateways, each),
            }


def _why(gateways: Gateways | None, exposure: Exposure) -> str:
    """Return `open`, or what is in the way."""
    if gateways is None:
        return "no gateways"
    seen = gateways.of(exposure.uid)
    if seen is None or seen.first != exposure.address:
        return "the outside address changed; withdraw it and open it again"
    if not is_permitted(gateways, exposure.uid, exposure.reservation, exposure.protocol, exposure.port):
        return "no rule lets anybody in"
    return "open"
