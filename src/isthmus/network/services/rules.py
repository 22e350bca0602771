"""A pod's Services as text for nft(8): one table of ours in the pod's own namespace, and nothing else of it.

    translate (nat, output)  address . protocol . port -> the Service's chain -> one endpoint by lot -> dnat
    refuse (filter, output)  what then still goes to an address of a Service: no endpoint, no such port, no such Service

Only what the pod itself sends passes these hooks: nothing comes through a pod. The kernel tracks connections, so an
answer comes back as from the Service, and a connection that lives is not turned when endpoints change. A pod that
becomes its own endpoint needs no other source address: both ends are in one namespace, and the answer is turned back.

Affinity: each endpoint has a set of its clients, whose elements time out. The table is replaced as a whole; what was
in these sets is taken along (`kept`), so a change elsewhere does not end it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network

from isthmus.model.services import Answering, Endpoint, ServicePort, Table, Transport

TABLE = "isthmus_services"
FAMILY = "ip"
# Before it a name of the hook's priority is not known to every nft (1.0.6): "dstnat" is -100.
_DSTNAT = -100
# A pod has one address.
_CLIENTS = 4
# Set -> client -> seconds left.
Kept = Mapping[str, Mapping[str, int]]


def text(table: Table, services: IPv4Network, kept: Kept | None = None) -> str:
    """Return the commands that replace what the namespace has, all at once.

    Args:
        table: who answers where.
        services: all addresses of Services.
        kept: clients of the endpoints before.
    """
    parts: list[str] = []
    elements: list[str] = []
    for number, service in enumerate(sorted(table)):
        if table[service].endpoints:
            parts += _service(f"service{number}", service, table[service], kept or {})
            elements.append(f"{service.address} . {service.transport} . {service.port} : goto service{number}")
    parts += [_map(elements), *_hooks(services, _elsewhere(table, services))]
    body = "\n".join(parts)
    return f"{removal()}table {FAMILY} {TABLE} {{\n{body}\n}}\n"


def removal() -> str:
    """Return the commands that take the table away, whether it is there or not."""
    return f"table {FAMILY} {TABLE}\ndelete table {FAMILY} {TABLE}\n"


def has_affinity(table: Table) -> bool:
    """Return whether clients are to be kept."""
    return any(answering.affinity_s for answering in table.values())


def set_name(service: ServicePort, endpoint: Endpoint) -> str:
    """Return the name of the set that holds an endpoint's clients; the same however else the table changes."""
    words = (service.address, service.transport, service.port, endpoint.address, endpoint.port)
    return f"clients_{'_'.join(map(str, words))}"


def _service(chain: str, service: ServicePort, answering: Answering, kept: Kept) -> Iterator[str]:
    if answering.affinity_s:
        yield from _sticky(chain, service, answering, kept)
    else:
        yield _block(f"chain {chain}", [_translation(service.transport, answering.endpoints)])


def _sticky(chain: str, service: ServicePort, answering: Answering, kept: Kept) -> Iterator[str]:
    names = [set_name(service, endpoint) for endpoint in answering.endpoints]
    for number, (name, endpoint) in enumerate(zip(names, answering.endpoints, strict=True)):
        yield _clients(name, answering.affinity_s, kept.get(name, {}))
        note = f"update @{name} {{ ip saddr }}"
        yield _block(f"chain {chain}_{number}", [note, _translation(service.transport, (endpoint,))])
    stay = [f"ip saddr @{name} goto {chain}_{number}" for number, name in enumerate(names)]
    lots = ", ".join(f"{number} : goto {chain}_{number}" for number in range(len(names)))
    yield _block(f"chain {chain}", [*stay, f"numgen random mod {len(names)} vmap {{ {lots} }}"])


def _clients(name: str, affinity_s: int, kept: Mapping[str, int]) -> str:
    lines = ["type ipv4_addr", "flags dynamic,timeout", f"size {_CLIENTS}", f"timeout {affinity_s}s"]
    left = {client: min(seconds, affinity_s) for client, seconds in kept.items() if seconds > 0}
    if left:
        shown = ", ".join(
            f"{client} timeout {affinity_s}s expires {seconds}s" for client, seconds in sorted(left.items())
        )
        lines.append(f"elements = {{ {shown} }}")
    return _block(f"set {name}", lines)


def _translation(transport: Transport, endpoints: tuple[Endpoint, ...]) -> str:
    first = endpoints[0]
    if len(endpoints) == 1:
        return f"meta l4proto {transport} dnat to {first.address}:{first.port}"
    lots = ", ".join(f"{number} : {each.address} . {each.port}" for number, each in enumerate(endpoints))
    return f"meta l4proto {transport} dnat ip addr . port to numgen random mod {len(endpoints)} map {{ {lots} }}"


def _map(elements: list[str]) -> str:
    lines = ["type ipv4_addr . inet_proto . inet_service : verdict"]
    if elements:
        lines.append(f"elements = {{ {', '.join(elements)} }}")
    return _block("map services", lines)


def _elsewhere(table: Table, services: IPv4Network) -> list[IPv4Address]:
    """Return the other addresses at which Services answer: ports of nodes, whose other ports are left alone."""
    return sorted({service.address for service in table if service.address not in services})


def _hooks(services: IPv4Network, elsewhere: list[IPv4Address]) -> Iterator[str]:
    ours, lookup = f"ip daddr {services}", "ip daddr . meta l4proto . th dport vmap @services"
    named = ", ".join(map(str, elsewhere))
    yield _block(
        "chain translate",
        [
            f"type nat hook output priority {_DSTNAT}; policy accept",
            f"{ours} {lookup}",
            *([f"ip daddr {{ {named} }} {lookup}"] if elsewhere else []),
        ],
    )
    yield _block(
        "chain refuse",
        [
            "type filter hook output priority filter; policy accept",
            # Matches nothing that is not turned already. It is what keeps connections tracked while nothing is to be
            # turned: without any such rule the kernel stops that in this namespace, and those that live would break.
            f"{ours} ct state established,related accept",
            f"{ours} meta l4proto tcp reject with tcp reset",
            f"{ours} reject with icmp port-unreachable",
        ],
    )


def _block(head: str, lines: list[str]) -> str:
    return "\n".join([f"{head} {{", *lines, "}"])
