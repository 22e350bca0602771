"""A cluster's Services for pods' packet filters: addresses, ports and endpoints.

As JSON a Service's port is a row: address, protocol, port, seconds of affinity, endpoints. Rows go from the kubelet by
the supervisor, which only keeps them apart, to the node's daemon. `["10.96.0.7", "tcp", 80, 0, ["10.64.0.3:8080"]]`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address
from typing import Any

# What one pod's filter may hold. A request with so much stays below the daemon's bound, LINE_MAX.
SERVICES_MAX = 1000
ENDPOINTS_MAX = 6000
# Of one Service's port; a chain with more would be slow to pass.
ENDPOINTS_OF_ONE_MAX = 250
# The longest that Kubernetes allows (v1.ClientIPConfig), seconds.
AFFINITY_MAX_S = 86400
PORT_MAX = 65535


class Transport(StrEnum):
    """What a Service's port speaks."""

    TCP = "tcp"
    UDP = "udp"
    SCTP = "sctp"


@dataclass(frozen=True, slots=True, order=True)
class ServicePort:
    """Where packets are sent to: a Service's port."""

    address: IPv4Address
    transport: Transport
    port: int

    def __str__(self) -> str:
        """Return the key of its row."""
        return f"{self.address} {self.transport} {self.port}"


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """Where they arrive."""

    address: IPv4Address
    port: int

    def __str__(self) -> str:
        """Return it as rows have it."""
        return f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class Answering:
    """Who answers at a Service's port.

    Attributes:
        endpoints: each gets as many connections as the others; none: who asks is refused.
        affinity_s: so long after its last connection a client comes to the same one again; 0 for never.
    """

    endpoints: tuple[Endpoint, ...] = ()
    affinity_s: int = 0


Table = Mapping[ServicePort, Answering]
Row = list[Any]


def row(service: ServicePort, answering: Answering) -> Row:
    """Return a row as JSON has it."""
    endpoints = [str(endpoint) for endpoint in answering.endpoints]
    return [str(service.address), service.transport.value, service.port, answering.affinity_s, endpoints]


def rows(table: Table) -> list[Row]:
    """Return all rows, in order."""
    return [row(service, table[service]) for service in sorted(table)]


def changes(have: Table, want: Table) -> tuple[list[Row], list[str]]:
    """Return what makes one table of another: rows to set, keys to drop."""
    new = {service: answering for service, answering in want.items() if have.get(service) != answering}
    return rows(new), [str(service) for service in sorted(have.keys() - want.keys())]


def bounded(table: Table) -> tuple[dict[ServicePort, Answering], list[ServicePort]]:
    """Return as much of a table as a pod's filter may hold, and the places of which something is left out."""
    kept: dict[ServicePort, Answering] = {}
    short: list[ServicePort] = []
    left = ENDPOINTS_MAX
    for service in sorted(table):
        if len(kept) == SERVICES_MAX:
            short.append(service)
            continue
        answering = table[service]
        some = answering.endpoints[: min(left, ENDPOINTS_OF_ONE_MAX)]
        left -= len(some)
        kept[service] = Answering(some, answering.affinity_s)
        if len(some) < len(answering.endpoints):
            short.append(service)
    return kept, short


def total(answering: Iterable[Answering]) -> int:
    """Return how many endpoints there are in all."""
    return sum(len(each.endpoints) for each in answering)
