"""Finds the drivers' definitions: a member of `Driver` is the folder of that name, where it has one."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from isthmus.filters.drivers.contract import Definition
from isthmus.filters.validate.site import Site
from isthmus.model.network import Driver

DRIVERS = "network_drivers"


@cache
def definitions() -> dict[str, Definition]:
    """Return the definition of each driver that has one."""
    folders = [driver for driver in Driver if find_spec(f"{__package__}.{driver}")]
    return {driver: import_module(f"{__package__}.{driver}.definition").DEFINITION for driver in folders}


def declared(site: Site, variable: str) -> Any:
    """Return a variable of role network, or its default."""
    value = site.shared(variable)
    return site.default("network", variable) if value is None else value


def chosen(site: Site) -> list[str]:
    """Return the names of the cluster's drivers."""
    return [str(driver) for driver in declared(site, DRIVERS) or (Driver.PRIVATE,)]


def of_site(site: Site) -> dict[str, Definition]:
    """Return the definitions of the cluster's drivers."""
    return {name: one for name, one in definitions().items() if name in chosen(site)}
