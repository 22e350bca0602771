"""Gateways of pod networks: who they are, their rules, and the addresses that pods have outside."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, summarize_address_range

from isthmus.filters.drivers.registry import of_site
from isthmus.filters.errors import InputError
from isthmus.filters.network.gateways import INGRESS, OUTSIDE, span, target
from isthmus.filters.validate.site import Site

GROUP = "gateways"


def gateway_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the group, the rules and the addresses."""
    yield from _group(site)
    yield from _ingress(site)
    spans = []
    for entry in site.shared_list(OUTSIDE):
        try:
            spans.append(span(str(entry.get("addresses"))))
        except InputError as error:
            yield site.problem_of(error, "addresses", OUTSIDE, value=entry.get("addresses"))
    yield from _overlaps(site, spans)
    yield from _owners(site)


def _group(site: Site) -> Iterator[str]:
    gateways = site.group(GROUP)
    for variable in (INGRESS, OUTSIDE):
        if not gateways and site.shared_list(variable):
            yield site.problem(
                f"{variable} is set, and group {GROUP} has no host that would follow it",
                f"put one or more members of group network into {GROUP}, or leave it out",
                variable,
            )
    for host in gateways:
        if host not in site.group("network") or host in site.group("joining"):
            yield site.problem(
                f"gateway {host} is no member of group network that playbooks visit", "add it there", host, GROUP
            )
        if len(gateways) > 1 and host in site.group("etcd"):
            yield site.problem(
                f"gateway {host} is a member of etcd: if it fails, nobody would say in time that another one leads out",
                f"take it out of {GROUP}, or of etcd",
                host,
                GROUP,
            )
    others = [name for name, each in of_site(site).items() if each.ranges]
    if gateways and others:
        yield site.problem(
            f"group {GROUP} has hosts, and pods of network {', '.join(others)} would go round them by their own node",
            f"take it out of network_drivers, or empty {GROUP}",
            "network_drivers",
            GROUP,
        )


def _ingress(site: Site) -> Iterator[str]:
    users = [str(user["name"]) for user in site.shared_list("base_users") if "name" in user]
    rules = site.shared_list(INGRESS)
    if rules and not site.shared_list(OUTSIDE):
        yield site.problem(
            f"{INGRESS} has rules, and there is no address that moves from one gateway to another",
            f"add one to {OUTSIDE}",
            INGRESS,
        )
    for rule in rules:
        try:
            target(str(rule.get("to")), users)
        except InputError as error:
            yield site.problem_of(error, "to", INGRESS, value=rule.get("to"))
        if "from" in rule and _network(rule["from"]) is None:
            remedy = "write it as 192.0.2.0/24"
            yield site.problem(f"{INGRESS}: {rule['from']} is no IPv4 network", remedy, "from", value=rule["from"])


def _overlaps(site: Site, spans: list[tuple[IPv4Address, IPv4Address]]) -> Iterator[str]:
    taken = [(f"{name} {declared}", network) for name, declared, network in _ranges(site)]
    taken += [(f"{host} ({address})", IPv4Network(address)) for host, address in _hosts(site)]
    for first, last in spans:
        shown = str(first) if first == last else f"{first}-{last}"
        for network in summarize_address_range(first, last):
            for what, other in taken:
                if network.overlaps(other):
                    remedy = "choose addresses outside that nothing else has"
                    yield site.problem(f"{OUTSIDE}: {shown} overlaps {what}", remedy, "addresses", OUTSIDE, value=shown)
            taken.append((f"another entry of {OUTSIDE}", network))


def _ranges(site: Site) -> Iterator[tuple[str, str, IPv4Network]]:
    for role, name in (("network", "network_pod_range"), ("kubernetes", "kubernetes_service_range")):
        if found := _network(site.shared(name) or site.default(role, name)):
            yield name, str(found), found
    for text in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"):
        yield "addresses of no host,", text, IPv4Network(text)


def _hosts(site: Site) -> Iterator[tuple[str, IPv4Address]]:
    for host in site.hosts:
        for name in ("base_address", "ansible_host"):
            try:
                yield host, IPv4Address(str(site.read(host, name)))
            except ValueError:
                continue


def _owners(site: Site) -> Iterator[str]:
    users = [str(user["name"]) for user in site.shared_list("base_users") if "name" in user]
    entries = [list(entry.get("users") or ()) for entry in site.shared_list(OUTSIDE)]
    named = [str(name) for names in entries for name in names]
    for name in dict.fromkeys(named):
        if name not in users:
            yield site.problem(
                f"unknown user in {OUTSIDE}: {name!r}", f"write one of {', '.join(users)}", OUTSIDE, value=name
            )
        if named.count(name) > 1:
            yield site.problem(f"{OUTSIDE} names {name} more than once", "leave one of the entries", OUTSIDE)
    if entries.count([]) > 1:
        yield site.problem(
            f"{OUTSIDE} has more than one entry without users", "make it one range, or name users", OUTSIDE
        )


def _network(declared: object) -> IPv4Network | None:
    try:
        return IPv4Network(str(declared))
    except ValueError:
        return None
