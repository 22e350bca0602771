"""Parses a pod's Services from a request: rows of `isthmus.model.services`, strict and bounded.

What is allowed of addresses follows from where the rules are: in the pod's own namespace they only turn what this pod
itself sends, and the filters of node and leg see the packet with its new destination. So an endpoint may be wherever
the pod may send to by itself; what can be none (Kubernetes' own rule for EndpointSlices) is refused nevertheless.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network
from typing import Any

from isthmus.model.services import (
    AFFINITY_MAX_S,
    ENDPOINTS_MAX,
    ENDPOINTS_OF_ONE_MAX,
    PORT_MAX,
    SERVICES_MAX,
    Answering,
    Endpoint,
    ServicePort,
    Table,
    Transport,
    total,
)
from isthmus.network.api.fields import BoundError, FieldError, Fields, address, shown

_PARTS = ("address", "protocol", "port", "affinity_s", "endpoints")
# Loopback, link-local, multicast and above: no endpoints; "this network" is no destination.
_NO_ENDPOINTS = tuple(map(IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3")))


def read(rows: Sequence[Any]) -> dict[ServicePort, Answering]:
    """Return the table that rows hold.

    Raises:
        FieldError: a row has another form.
        BoundError: a value cannot be, a place comes twice, or there are too many.
    """
    if len(rows) > SERVICES_MAX:
        raise BoundError(f"services are more than {SERVICES_MAX}")
    table: dict[ServicePort, Answering] = {}
    for row in rows:
        service, answering = _row(row)
        if service in table:
            raise BoundError(f"services has {service} twice")
        table[service] = answering
    if total(table.values()) > ENDPOINTS_MAX:
        raise BoundError(f"services have more than {ENDPOINTS_MAX} endpoints")
    return table


def outside(table: Table, networks: Iterable[IPv4Network]) -> list[ServicePort]:
    """Return the places whose addresses are in none of the networks."""
    allowed = tuple(networks)
    return [service for service in table if not any(service.address in network for network in allowed)]


def _row(row: object) -> tuple[ServicePort, Answering]:
    if not isinstance(row, list) or len(row) != len(_PARTS):
        raise FieldError(f"services has {shown(row)}, no row of {len(_PARTS)}")
    fields = Fields(dict(zip(_PARTS, row, strict=True)))
    service = ServicePort(fields.address("address"), fields.choice("protocol", Transport), _port(fields))
    endpoints = fields.take("endpoints", list)
    if len(endpoints) > ENDPOINTS_OF_ONE_MAX:
        raise BoundError(f"services have more than {ENDPOINTS_OF_ONE_MAX} endpoints at {service}")
    found = tuple(map(_endpoint, endpoints))
    if len(set(found)) != len(found):
        raise BoundError(f"services have an endpoint twice at {service}")
    return service, Answering(found, fields.integer("affinity_s", 0, AFFINITY_MAX_S))


def _endpoint(text: object) -> Endpoint:
    host, colon, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    # int() takes more than digits: spaces, signs, underscores, other scripts' digits.
    if not colon or not (port.isascii() and port.isdigit() and len(port) <= len(str(PORT_MAX))):
        raise BoundError(f"services have {shown(text)}, no endpoint")
    found = address("services", host)
    if any(found in network for network in _NO_ENDPOINTS):
        raise BoundError(f"services have {shown(text)}, which can be no endpoint")
    return Endpoint(found, _port(Fields({"port": int(port)})))


def _port(fields: Fields) -> int:
    return fields.integer("port", 1, PORT_MAX)
