"""A host's interfaces, as Ansible's facts have them."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any


def host_interfaces(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return Ansible's facts of each interface."""
    return [found for name in facts.get("interfaces", ()) if (found := facts.get(_fact(name)))]


def interface_overlap(interface: Mapping[str, Any], pods: IPv4Network, variable: str) -> str:
    """Return the problem of an interface's network that overlaps a range of pods; empty for none."""
    ipv4 = interface.get("ipv4") or {}
    if not ipv4.get("address"):
        return ""
    own = IPv4Network(f"{ipv4['address']}/{ipv4.get('prefix', 32)}", strict=False)
    if not own.overlaps(pods):
        return ""
    return f"{interface['device']} ({IPv4Address(ipv4['address'])}) lies in {variable} {pods}; choose another range"


def _fact(interface: str) -> str:
    """Return the name of an interface's fact."""
    return interface.replace("-", "_").replace(".", "_").replace(":", "_")
