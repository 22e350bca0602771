"""Encryption between nodes: settings under which packets would stay in the clear, or no node could have a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from isthmus.filters.drivers.registry import DRIVERS, chosen
from isthmus.filters.validate.site import Site
from isthmus.model.network import Driver
from isthmus.model.networks.wireguard import Encryption, Program

VARIABLE, PORT, DAYS = "network_encryption", "network_wireguard_port", "network_wireguard_key_days"
# Of UDP, which a node has already: DNS, and the drivers' VXLAN.
_TAKEN = {53: "DNS", 4789: "VXLAN", 8472: "VXLAN"}
_DAYS_MAX = 3650
_GRANT = "wireguard/"


def encryption_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the encryption between nodes."""
    yield from _numbers(site)
    if site.shared(VARIABLE) != Encryption.WIREGUARD:
        return
    for driver in chosen(site):
        if driver != Driver.PRIVATE:
            yield site.problem(
                f"{VARIABLE} is for {Driver.PRIVATE} alone, and pods of {driver} would send in the clear",
                f"take {driver} out of {DRIVERS}, or set {VARIABLE}: {Encryption.NONE}",
                VARIABLE,
                DRIVERS,
            )
    if site.shared("join_service") or site.group("joining"):
        yield site.problem(
            f"{VARIABLE} is set, and nodes that join by themselves have no certificate with their name",
            f"unset join_service and add nodes by playbooks/add_nodes.yml, or set {VARIABLE}: {Encryption.NONE}",
            VARIABLE,
            "join_service",
        )
    yield from _grants(site)


def _numbers(site: Site) -> Iterator[str]:
    port, days = site.shared(PORT), site.shared(DAYS)
    if isinstance(port, int) and (not 1 <= port <= 65535 or port in _TAKEN):
        why = f"is {_TAKEN[port]}'s" if port in _TAKEN else "is no port"
        yield site.problem(f"{PORT} {port} {why}", "use another one, such as 51820", PORT)
    if isinstance(days, int) and not 0 <= days <= _DAYS_MAX:
        yield site.problem(f"{DAYS} is {days}", f"use days up to {_DAYS_MAX}, or 0 for never", DAYS)


def _grants(site: Site) -> Iterator[str]:
    users = [user for user in site.shared_list("etcd_users") if user.get("name") == "networkd"]
    prefixes = {grant.get("prefix") for user in users for grant in user.get("grants") or ()}
    if users and _GRANT not in prefixes:
        yield site.problem(
            f"{VARIABLE} is set, and etcd_users does not let networkd publish keys",
            f"add the grant {{prefix: {_GRANT}, access: readwrite}} to networkd",
            VARIABLE,
            "etcd_users",
        )


def network_wireguard_problems(found: Mapping[str, Any], program: str) -> list[str]:
    """Return why a host cannot encrypt what it sends to others.

    Args:
        found: of the module `network_state`; empty where nobody wants to.
        program: what is to run WireGuard.
    """
    if not found:
        return []
    if program == Program.KERNEL and not found["kernel"]:
        return [
            f"its kernel has no WireGuard ({found['error']}); install the kernel's module wireguard, or set"
            f" network_wireguard_program: {Program.WIREGUARD_GO}, or {VARIABLE}: {Encryption.NONE}"
        ]
    if program == Program.WIREGUARD_GO and not found["tun"]:
        return ["/dev/net/tun is missing, by which wireguard-go makes its interface; load the module tun"]
    return []


FILTERS: dict[str, Callable[..., object]] = {"network_wireguard_problems": network_wireguard_problems}
