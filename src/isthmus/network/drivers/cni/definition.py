"""The site's own network: its plugins give the pods of each node their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from isthmus.model.network import Driver
from isthmus.model.networks import cni
from isthmus.network.drivers.cni.rules import Cni
from isthmus.network.drivers.contract import Definition
from isthmus.network.state import ipam


@dataclass(frozen=True, slots=True)
class CniSettings:
    """Its part of /etc/isthmus/network.json.

    Attributes:
        network: its range, and the interface that pods are behind.
        folder: of the administrator's list.
        list: its file's name.
        plugins: folder of the programs.
        gateway: the node's own address for its pods where plugins name none.
        records: folder for what plugins were given and answered; it outlives the machine, as what plugins remember may.
    """

    network: Cni
    folder: Path
    list: str
    plugins: Path
    gateway: IPv4Address | None = None
    records: Path = Path("/var/lib/isthmus/cni")


def read(raw: Mapping[str, Any]) -> CniSettings:
    """Read the settings.

    Raises:
        KeyError: a field is missing.
        ValueError: a field has no value that can be.
    """
    if not cni.is_interface(raw["interface"]):
        raise ValueError(f"{raw['interface']!r} is no interface")
    network = Cni(IPv4Network(raw["range"]), raw["interface"])
    gateway = IPv4Address(raw["gateway"]) if raw["gateway"] else None
    return CniSettings(network, Path(raw["folder"]), raw["list"], Path(raw["plugins"]), gateway)


DEFINITION = Definition(Driver.CNI, ipam.note, has_addresses=False, is_traced=False, read=read, form=2)
