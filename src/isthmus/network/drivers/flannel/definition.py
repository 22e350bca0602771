"""Flannel's network: each node gives its pods addresses of its own subnet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from isthmus.model.flannel import PORT
from isthmus.model.network import Driver
from isthmus.network.drivers.contract import Definition
from isthmus.network.drivers.flannel.rules import Backend, Flannel
from isthmus.network.state import ipam


@dataclass(frozen=True, slots=True)
class FlannelSettings:
    """Flannel's part of /etc/isthmus/network.json; flanneld itself is another service.

    Attributes:
        network: its range, and how packets come to other nodes.
        plugins: folder of the CNI plugins.
        list: their list, a .conflist.
        records: folder for what plugins were given and answered; ends with the machine, as the pods do.
    """

    network: Flannel
    plugins: Path
    list: Path
    records: Path = Path("/run/isthmus/flannel")


def read(raw: Mapping[str, Any]) -> FlannelSettings:
    """Read the settings.

    Raises:
        KeyError: a field is missing.
        ValueError: a field has no value that can be.
    """
    network = Flannel(IPv4Network(raw["range"]), Backend(raw["backend"]))
    return FlannelSettings(network, Path(raw["plugins"]), Path(raw["list"]))


DEFINITION = Definition(
    Driver.FLANNEL,
    ipam.note,
    has_addresses=False,
    is_traced=False,
    tunnel_ports=(PORT,),
    units=("isthmus-flanneld",),
    read=read,
)
