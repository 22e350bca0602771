"""Reads a pod's Services back from its rules (`service_rules`): the observed state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any

from isthmus.model.services import Answering, Endpoint, ServicePort, Transport

_Rules = Mapping[str, Sequence[Mapping[str, Any]]]


def table(entries: Sequence[Mapping[str, Any]]) -> dict[ServicePort, Answering]:
    """Return who answers where; affinity, which chooses among endpoints, is left out.

    Args:
        entries: of the table, as in libnftables-json(5).
    """
    rules: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for entry in entries:
        if rule := entry.get("rule"):
            rules[rule["chain"]] += rule["expr"]
    maps = [entry["map"] for entry in entries if entry.get("map", {}).get("name") == "services"]
    return {
        _service_port(key["concat"]): Answering(tuple(sorted(_endpoints(rules, verdict["goto"]["target"]))))
        for each in maps
        for key, verdict in each.get("elem", ())
    }


def _service_port(parts: Sequence[Any]) -> ServicePort:
    address, transport, port = parts
    return ServicePort(IPv4Address(address), Transport(transport), int(port))


def _endpoints(rules: _Rules, chain: str) -> Iterator[Endpoint]:
    for statement in rules.get(chain, ()):
        if turned := statement.get("dnat"):
            yield from _turned(turned)
        elif lots := statement.get("vmap"):
            for _, verdict in lots["data"]["set"]:
                yield from _endpoints(rules, verdict["goto"]["target"])


def _turned(rule: Mapping[str, Any]) -> Iterator[Endpoint]:
    if isinstance(rule["addr"], str):
        yield Endpoint(IPv4Address(rule["addr"]), int(rule["port"]))
        return
    for _, where in rule["addr"]["map"]["data"]["set"]:
        address, port = where["concat"]
        yield Endpoint(IPv4Address(address), int(port))
