"""Layer network, gateways: the daemon's settings from network_ingress and network_outside_addresses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.network.interfaces import host_interfaces
from isthmus.filters.suggest import unknown
from isthmus.model.network import is_reservation
from isthmus.model.node_network import LEG

INGRESS, OUTSIDE = "network_ingress", "network_outside_addresses"
EVERYBODY = "*"
# Of one entry: a pool for which there are more is a network whose route leads to the cluster.
ADDRESSES_MAX = 256
_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
_TO = "write web.alice:443, alice:8000-8100, alice, or *:443"


@dataclass(frozen=True, slots=True)
class Target:
    """What a rule of network_ingress is about.

    Attributes:
        user: whose pods; empty for everybody's.
        reservation: which of the user's; empty for any.
        first: the lowest port.
        last: the highest.
    """

    user: str
    reservation: str
    first: int
    last: int


def target(text: str, users: Iterable[str]) -> Target:
    """Read `to` of a rule.

    Raises:
        InputError: it is none, or names nobody.
    """
    who, colon, ports = text.rpartition(":") if ":" in text else (text, "", "")
    first, last = _span(text, ports) if colon else (1, 65535)
    if who == EVERYBODY:
        return Target("", "", first, last)
    known = list(users)
    if who in known:
        return Target(who, "", first, last)
    reservation, dot, user = who.partition(".")
    if not dot:
        raise unknown(f"user in {INGRESS}", who, known)
    if user not in known:
        raise unknown(f"user in {INGRESS}", user, known)
    if not is_reservation(reservation):
        raise InputError(f"{INGRESS}: {reservation!r} cannot name a reservation", _TO)
    return Target(user, reservation, first, last)


def span(addresses: str) -> tuple[IPv4Address, IPv4Address]:
    """Read the addresses of an entry of network_outside_addresses: the first and the last.

    Raises:
        InputError: they are none.
    """
    first, dash, last = addresses.partition("-")
    try:
        found = IPv4Address(first.strip()), IPv4Address((last if dash else first).strip())
    except ValueError:
        raise InputError(
            f"{OUTSIDE}: {addresses!r} is no address", "write 198.51.100.10 or 198.51.100.10-198.51.100.12"
        ) from None
    if not 0 <= int(found[1]) - int(found[0]) < ADDRESSES_MAX:
        raise InputError(
            f"{OUTSIDE}: {addresses} ends before it begins, or has more than {ADDRESSES_MAX} addresses",
            "write the lowest first",
        )
    return found


def network_gateways(
    ingress: Iterable[Mapping[str, Any]], outside: Iterable[Mapping[str, Any]], users: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the daemon's settings of gateways, with uids for names.

    Args:
        ingress: network_ingress.
        outside: network_outside_addresses.
        users: base_users.

    Raises:
        InputError: an unknown user, or something that cannot be read.
    """
    uids = {str(user["name"]): int(user["uid"]) for user in users}
    return {
        "ingress": [_rule(rule, uids) for rule in ingress],
        "outside": [_entry(each, uids) for each in outside],
    }


def network_ingress_problem(
    ingress: Iterable[Mapping[str, Any]],
    users: Iterable[Mapping[str, Any]],
    answer: Mapping[str, Any],
    *,
    has_daemon: bool,
) -> str:
    """Return which reservation a rule names that nobody has, or why that is not known; empty for neither.

    Args:
        ingress: network_ingress.
        users: base_users.
        answer: of the command `isthmus network list --json`, run by root, as Ansible registers it.
        has_daemon: whether there is one to ask: a new site has none yet, and no reservations.
    """
    names = [str(user["name"]) for user in users]
    wanted = [found for rule in ingress if (found := target(str(rule["to"]), names)).reservation]
    if not wanted or not has_daemon:
        return ""
    try:
        reserved = {(each["user"], each["name"]) for each in json.loads(answer.get("stdout") or "")["reserved"]}
    except (ValueError, KeyError, TypeError):
        why = str(answer.get("stderr") or answer.get("msg") or "it printed nothing that can be read").strip()
        rules = ", ".join(sorted({f"{each.reservation}.{each.user}" for each in wanted}))
        return (
            f"{INGRESS}: whether anybody has {rules} is not known, for `isthmus network list` failed on the controller:"
            f" {why}; mend isthmus-networkd there, or leave these rules out until it runs"
        )
    for each in wanted:
        if (each.user, each.reservation) not in reserved:
            return (
                f"{INGRESS}: {each.user} has no reservation {each.reservation}; first, as {each.user} on a login"
                f" node: isthmus network reserve {each.reservation}"
            )
    return ""


def network_outside_problem(facts: Mapping[str, Any], outside: Iterable[Mapping[str, Any]]) -> str:
    """Return which outside address a gateway cannot have; empty for none.

    Args:
        facts: Ansible's, of its interfaces.
        outside: network_outside_addresses.
    """
    networks = [
        IPv4Network(f"{ipv4['address']}/{ipv4.get('prefix', 32)}", strict=False)
        for each in host_interfaces(facts)
        if not str(each.get("device", "")).startswith((LEG, "lo"))
        for ipv4 in (each.get("ipv4") or {}, *each.get("ipv4_secondaries", ()))
        if ipv4.get("address")
    ]
    for each in outside:
        for address in span(str(each["addresses"])):
            if not any(address in network for network in networks if network.prefixlen < 32):
                return (
                    f"{OUTSIDE}: {address} is in no network of this gateway's interfaces, so nobody would find it"
                    " there; choose addresses that are free in such a network"
                )
    return ""


def _span(text: str, ports: str) -> tuple[int, int]:
    found = _PORTS.fullmatch(ports)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last <= 65535:
        raise InputError(f"{INGRESS}: {text!r} has no ports", _TO)
    return first, last


def _rule(rule: Mapping[str, Any], uids: Mapping[str, int]) -> dict[str, Any]:
    found = target(str(rule["to"]), uids)
    return {
        "action": rule["action"],
        "from": rule.get("from", "0.0.0.0/0"),
        "protocol": rule.get("protocol", "tcp"),
        "ports": f"{found.first}-{found.last}",
        "uid": uids[found.user] if found.user else None,
        "reservation": found.reservation,
    }


def _entry(entry: Mapping[str, Any], uids: Mapping[str, int]) -> dict[str, Any]:
    names = [str(name) for name in entry.get("users") or ()]
    for name in names:
        if name not in uids:
            raise unknown(f"user in {OUTSIDE}", name, uids)
    first, last = span(str(entry["addresses"]))
    return {"first": str(first), "last": str(last), "uids": sorted(uids[name] for name in names)}


FILTERS: dict[str, Callable[..., object]] = {
    "network_gateways": network_gateways,
    "network_ingress_problem": network_ingress_problem,
    "network_outside_problem": network_outside_problem,
}
