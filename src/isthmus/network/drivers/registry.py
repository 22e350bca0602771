"""Finds definitions by name: a member of `Driver` is the folder of that name (see the package). No I/O."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from isthmus.model.network import Driver

if TYPE_CHECKING:
    # etcd's state asks for definitions, and they are made of its parts.
    from isthmus.network.drivers.contract import Definition

NAMES = tuple(driver for driver in Driver if driver is not Driver.NONE)


@cache
def definition(driver: Driver) -> Definition:
    """Return what a driver says of itself."""
    found: Definition = import_module(f"{__package__}.{driver}.definition").DEFINITION
    return found


def units() -> list[str]:
    """Return the daemons of all drivers, whether this node has them or not."""
    return [unit for driver in NAMES for unit in definition(driver).units]


def tunnel_ports() -> list[int]:
    """Return the ports of all drivers' tunnels, whether this cluster has them or not."""
    return sorted({port for driver in NAMES for port in definition(driver).tunnel_ports})
