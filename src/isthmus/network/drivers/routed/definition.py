"""The routed network: each node gives its pods addresses of the subnet that follows from its own address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from isthmus.model.network import Driver
from isthmus.model.networks.routed import Plan
from isthmus.network.drivers.contract import Definition
from isthmus.network.drivers.routed.rules import Routed
from isthmus.network.state import ipam


@dataclass(frozen=True, slots=True)
class RoutedSettings:
    """Its part of /etc/isthmus/network.json.

    Attributes:
        network: the plan of addresses.
    """

    network: Routed


def read(raw: Mapping[str, Any]) -> RoutedSettings:
    """Read the settings.

    Raises:
        KeyError: a field is missing.
        ValueError: a field has no value that can be.
    """
    return RoutedSettings(Routed(Plan(IPv4Network(raw["range"]), IPv4Network(raw["segment"]))))


DEFINITION = Definition(Driver.ROUTED, ipam.note, has_addresses=False, is_traced=False, read=read, form=2)
